"""What the trainer is told and what it answers. No torch: whoever speaks to the trainer imports only this.

Lines on the child's standard input are `StepRequest`, `StepsRequest`, `InitRequest`, `ScoreRequest` or
`Ping`; lines on its standard output are `Ready`, `Pong`, `ProgressEvent`, `StepReport`, `ScoreReport` or
`ErrorLine`. Each has a `kind`. Every log-probability is in nats; every length in tokens; every duration in
seconds.
"""

from trainer.codec import ContractError
from trainer.contracts.config import TARGET_MODULES, LoraSpec, LossConfig, StepConfig
from trainer.contracts.reports import (
    Artefact,
    ErrorLine,
    Pong,
    Probe,
    ProgressEvent,
    Ready,
    SampleOutcome,
    ScoreReport,
    StepReport,
)
from trainer.contracts.requests import (
    TOGETHER_AT_MOST,
    TOGETHER_BELOW,
    BaselineState,
    InitRequest,
    Ping,
    SampleInput,
    ScoreRequest,
    StepRequest,
    StepsRequest,
    shares_a_pass,
)
from trainer.contracts.types import Outcome, Part

__all__ = [
    "TARGET_MODULES",
    "TOGETHER_AT_MOST",
    "TOGETHER_BELOW",
    "Artefact",
    "BaselineState",
    "ContractError",
    "ErrorLine",
    "InitRequest",
    "LoraSpec",
    "LossConfig",
    "Outcome",
    "Part",
    "Ping",
    "Pong",
    "Probe",
    "ProgressEvent",
    "Ready",
    "SampleInput",
    "SampleOutcome",
    "ScoreReport",
    "ScoreRequest",
    "StepConfig",
    "StepReport",
    "StepRequest",
    "StepsRequest",
    "shares_a_pass",
]
