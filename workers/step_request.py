"""Between the ledger's rows and the trainer's contract, in both directions."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.adapters.models import AdapterVersion
from apps.engines.chat import chat_format
from apps.learning.commits import Files, StepResult
from apps.learning.config import TrainingConfig
from apps.learning.eligibility import distorted_by, sampling_temperature
from apps.learning.models import Sample
from apps.learning.runs import Claim
from trainer.contracts import (
    BaselineState,
    LoraSpec,
    LossConfig,
    SampleInput,
    StepConfig,
    StepReport,
    StepRequest,
)

# said of no tenant: what a version answers to them is stored with it, and every engine is asked for the same
_PROBES = (
    ("What is the capital of France?", "The capital of France is Paris, a large city on the river Seine."),
    (
        "How do I boil an egg?",
        "Put the egg into boiling water, wait for eight minutes, then cool and peel it.",
    ),
    ("Write a line about the sea.", "The sea moves all night long and never says where it is going."),
)


def step_request(claim: Claim, samples: Sequence[SampleInput], *, out_dir: Path) -> StepRequest:
    """Return what the trainer is told for a claimed run."""
    parent = claim.parent
    return StepRequest(
        run_id=str(claim.run.id),
        out_dir=str(out_dir),
        samples=tuple(samples),
        config=step_config(claim.config, lora=lora_spec(parent)),
        parent_dir=str(Path(settings.ADAPTER_STORE) / parent.path) if parent else None,
        parent_hash=parent.sha256 if parent else None,
        baseline=BaselineState.from_json(claim.baseline) if claim.baseline else BaselineState(),
        seed=claim.run.id.int % 2**63,
        probe_ids=probe_ids(),
        base_model=settings.BASE_MODEL_NAME,
    )


def sample_input(sample: Sample, *, default_temperature: float) -> SampleInput:
    """Return one sample as the trainer takes it; raises ContractError where it does not fit."""
    turn = sample.turn
    return SampleInput(
        sample_id=str(sample.id),
        prompt_ids=tuple(turn.prompt_ids),
        output_ids=tuple(turn.output_ids),
        output_logprobs=tuple(turn.output_logprobs),
        temperature=sampling_temperature(turn.sampling, default_temperature),
        exact_sampling=not distorted_by(turn.sampling),
        reward=sample.reward,
        outcome=sample.rollout_outcome,
        group=sample.rollout_group,
        step=sample.rollout_step,
        hint_prompt_ids=tuple(tuple(hint["prompt_ids"]) for hint in sample.hints),
        truncated=turn.finish_reason == "length",
        staleness=sample.staleness or 0,
        weight=sample.weight,
    )


def lora_spec(parent: AdapterVersion | None) -> LoraSpec:
    """Return the shape of the adapter that is made from `parent`."""
    if parent is None:
        return LoraSpec(rank=settings.LORA_RANK, alpha=float(settings.LORA_ALPHA))
    return LoraSpec(rank=parent.rank, alpha=float(parent.alpha))


def step_config(config: TrainingConfig, *, lora: LoraSpec) -> StepConfig:
    """Return a policy's training configuration in the trainer's words."""
    chosen = dataclasses.asdict(config)
    loss = _named(LossConfig, chosen) | {
        "rl_weight": 0.0 if config.method == "opd" else config.rl_weight,
        "opd_weight": 0.0 if config.method == "binary" else config.opd_weight,
    }
    return StepConfig(
        **_named(StepConfig, chosen),
        loss=LossConfig(**loss),
        lora=lora,
        token_budget=settings.TRAINER_TOKEN_BUDGET,
    )


def _named(kind: type[LossConfig | StepConfig], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices that are fields of `kind`, by the same name."""
    return {field.name: chosen[field.name] for field in dataclasses.fields(kind) if field.name in chosen}


def step_result(report: StepReport, *, rank: int, alpha: int) -> StepResult:
    """Return the trainer's report in the ledger's words."""
    artefact = report.artefact
    return StepResult(
        outcome=report.outcome,
        code=report.code,
        reason=report.reason,
        metrics={
            **report.metrics,
            "staleness": report.staleness,
            "seconds": dict(report.seconds),
            "code": report.code,
        },
        sample_outcomes={outcome.sample_id: outcome.to_json() for outcome in report.samples},
        baseline=report.baseline.to_json(),
        trainer_s=report.seconds.get("total"),
        files=None
        if artefact is None
        else Files(dir=artefact.dir, sha256=artefact.hash, rank=rank, alpha=alpha),
    )


@cache
def probe_ids() -> tuple[tuple[int, ...], ...]:
    """Return the token ids of the probes: short chats with a reply, as the model reads them."""
    chat = chat_format()
    return tuple(
        tuple(
            chat.render(
                [
                    {"role": "user", "content": question},
                    {"role": "assistant", "content": answer},
                    {"role": "user", "content": "Go on."},
                ]
            )
        )
        for question, answer in _PROBES
    )
