from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from trainer.codec import ContractError
from trainer.contracts import BaselineState, LossConfig, SampleInput, StepConfig, StepReport, StepRequest


def request() -> StepRequest:
    sample = SampleInput(
        sample_id="a",
        prompt_ids=(1, 2),
        output_ids=(3, 4),
        output_logprobs=(-0.5, -1.0),
        temperature=0.7,
        reward=-1.0,
        hint_prompt_ids=((1, 5), (1, 6)),
        staleness=2,
    )
    return StepRequest(
        run_id="r",
        out_dir="/x",
        samples=(sample,),
        config=StepConfig(loss=LossConfig(opd_kind="full_kl")),
        baseline=BaselineState(mean=0.5, count=3),
        probe_ids=((1, 2, 3),),
    )


def test_a_request_survives_json() -> None:
    sent = request()
    assert StepRequest.from_json(json.loads(json.dumps(sent.to_json()))) == sent


def test_lists_become_tuples_and_whole_numbers_floats() -> None:
    sample = SampleInput(sample_id="a", prompt_ids=[1], output_ids=[2], output_logprobs=[-1])  # type: ignore[arg-type]
    assert sample.prompt_ids == (1,)
    assert sample.output_logprobs == (-1.0,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"config": {"lr": 2.0}}, "StepConfig.lr: value 2 is outside [0, 1]"),
        ({"config": {"lr": True}}, "StepConfig.lr: expected float, got bool"),
        ({"config": {"loss": {"opd_clip": 50.0}}}, "LossConfig.opd_clip: value 50 is outside [0.001, 20]"),
        (
            {"config": {"loss": {"opd_kind": "half"}}},
            "LossConfig.opd_kind: 'half' is none of 'sampled', 'full_kl', 'top_k', 'top_k_select'",
        ),
        ({"config": {"speed": 1}}, "StepConfig: unknown field 'speed'"),
        ({"seed": -1}, "StepRequest.seed: value -1 is outside"),
        ({"probe_ids": [[]]}, "StepRequest.probe_ids[0]: length 0 is outside"),
        ({"samples": "none"}, "StepRequest.samples: expected a list"),
        ({"parent_hash": "abc"}, "StepRequest.parent_hash: length 3 is outside [64, 64]"),
    ],
)
def test_what_is_out_of_bounds_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ContractError) as refused:
        StepRequest.from_json({**request().to_json(), **change})
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("logprobs", "message"),
    [
        ((-1.0,), "1 values for 2 tokens"),
        ((-1.0, float("nan")), "nan is not finite"),
        ((-1.0, float("-inf")), "-inf is not finite"),
        ((-1.0, 0.5), "value 0.5 is outside"),
    ],
)
def test_misaligned_or_impossible_log_probabilities_are_refused(logprobs: Any, message: str) -> None:
    with pytest.raises(ContractError) as refused:
        SampleInput(sample_id="a", prompt_ids=(1,), output_ids=(2, 3), output_logprobs=logprobs)
    assert message in str(refused.value)


def test_a_report_has_an_artefact_exactly_where_a_version_was_made() -> None:
    with pytest.raises(ContractError):
        StepReport(
            run_id="r", outcome="made", code="ok", reason="", metrics={}, samples=(), baseline=BaselineState(),
            staleness={}, seconds={},
        )  # fmt: skip


def test_the_defaults_are_the_ones_written_down() -> None:
    config = StepConfig()
    loss = config.loss
    assert (loss.rl_weight, loss.opd_weight, loss.policy_form) == (1.0, 1.0, "decoupled")
    assert (loss.clip_low, loss.clip_high, loss.dual_clip, loss.opd_clip) == (0.2, 0.28, 3.0, 1.0)
    assert (loss.behaviour_cap, loss.behaviour_mask_above, loss.behaviour_truncate_at) == ("mask", 5.0, 2.0)
    assert (config.lr, config.grad_clip, config.min_ess, config.updates) == (1e-4, 1.0, 0.3, 1)
    assert config.epochs == 1


def test_importing_the_contracts_brings_no_torch() -> None:
    code = "import sys, trainer.contracts; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
