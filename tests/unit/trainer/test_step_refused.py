"""What a step refuses, skips or leaves out, and that nothing is left behind."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from trainer.artefact import MANIFEST, OPTIMIZER, WEIGHTS
from trainer.contracts import (
    LoraSpec,
    SampleInput,
)
from trainer.model.policy import PolicyModel
from trainer.step import run_step

from .steps import HINT, ZERO, For, Make, made, nothing_left


def test_an_empty_or_useless_batch_says_why(model: PolicyModel, sample: Make, request_for: For) -> None:
    assert run_step(model, request_for("none", [])).reason == "no signal: no samples"
    report = run_step(model, request_for("cut", [sample(1, reward=1.0, truncated=True)]))
    assert report.reason == "no signal: cut by the length limit: no reward; no hint"
    assert report.samples[0].parts == ()


def test_rollouts_of_another_policy_are_refused(model: PolicyModel, sample: Make, request_for: For) -> None:
    one = sample(1, reward=1.0)
    far = SampleInput.from_json({**one.to_json(), "output_logprobs": [-20.0] * 6})
    request = request_for("one", [far], baseline=ZERO)
    report = run_step(model, request)
    assert (report.outcome, report.code) == ("refused", "rollout_kl")
    assert nothing_left(request)


def test_too_small_an_effective_sample_is_skipped(model: PolicyModel, sample: Make, request_for: For) -> None:
    one = sample(1, length=10, reward=1.0)
    assert one.output_logprobs is not None
    shifted = (one.output_logprobs[0] - 4.0, *one.output_logprobs[1:])
    stale = SampleInput.from_json({**one.to_json(), "output_logprobs": list(shifted)})
    request = request_for("one", [stale], baseline=ZERO, max_rollout_k3=1e6)
    report = run_step(model, request)
    assert (report.outcome, report.code, report.baseline) == ("skipped", "low_ess", ZERO)
    assert report.metrics["ess"] < 0.3
    assert nothing_left(request)


@pytest.mark.parametrize(
    ("bound", "code"), [({"max_grad_norm": 1e-6}, "grad_norm"), ({"max_step_k3": 1e-9}, "step_kl")]
)
def test_a_step_past_its_bound_is_thrown_away(
    model: PolicyModel, sample: Make, request_for: For, bound: dict[str, float], code: str
) -> None:
    request = request_for("one", [sample(1, hint_prompt_ids=HINT)], **bound)
    report = run_step(model, request)
    assert (report.outcome, report.code) == ("refused", code)
    assert nothing_left(request)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_refused(
    model: PolicyModel, sample: Make, request_for: For, value: float
) -> None:
    parent = made(run_step(model, request_for("parent", [sample(1, hint_prompt_ids=HINT)])))
    from safetensors.torch import load, save

    tensors = load((parent / WEIGHTS).read_bytes())
    tensors[min(tensors)][0, 0] = value
    (parent / WEIGHTS).write_bytes(save(tensors))
    (parent / MANIFEST).unlink()
    request = request_for("one", [sample(2, hint_prompt_ids=HINT)], parent_dir=str(parent))
    report = run_step(model, request)
    assert (report.outcome, report.code) == ("refused", "not_finite")
    assert not Path(request.out_dir).exists()
    json.dumps(report.to_json(), allow_nan=False)
    made(run_step(model, request_for("after", [sample(2, hint_prompt_ids=HINT)])))


def test_a_parent_that_is_not_what_it_was_is_not_used(
    model: PolicyModel, sample: Make, request_for: For
) -> None:
    samples = [sample(1, hint_prompt_ids=HINT)]
    parent = made(run_step(model, request_for("parent", samples)))
    other = run_step(model, request_for("hash", samples, parent_dir=str(parent), parent_hash="0" * 64))
    assert (other.outcome, other.code) == ("failed", "bad_parent")
    shape = run_step(
        model, request_for("shape", samples, parent_dir=str(parent), lora=LoraSpec(rank=8, alpha=16.0))
    )
    assert (shape.outcome, shape.code) == ("failed", "bad_parent")
    with (parent / OPTIMIZER).open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x01")
    bitrot = run_step(model, request_for("bitrot", samples, parent_dir=str(parent)))
    assert (bitrot.outcome, bitrot.code) == ("failed", "bad_parent")
    gone = run_step(model, request_for("gone", samples, parent_dir=str(parent / "nowhere")))
    assert (gone.outcome, gone.code) == ("failed", "bad_parent")


def test_a_full_disk_leaves_nothing_behind(
    model: PolicyModel, sample: Make, request_for: For, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def full(handle: int) -> None:
        written.append(handle)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    request = request_for("one", [sample(1, hint_prompt_ids=HINT)])
    report = run_step(model, request)
    assert (report.outcome, report.code, len(written)) == ("failed", "no_space", 1)
    assert report.reason.startswith("no space")
    assert nothing_left(request)


def test_a_version_is_never_replaced(model: PolicyModel, sample: Make, request_for: For) -> None:
    request = request_for("one", [sample(1, hint_prompt_ids=HINT)])
    before = (made(run_step(model, request)) / MANIFEST).read_bytes()
    report = run_step(model, request)
    assert (report.outcome, report.code) == ("failed", "out_dir_exists")
    assert (Path(request.out_dir) / MANIFEST).read_bytes() == before


def test_a_sample_over_the_length_bound_is_left_out(
    model: PolicyModel, sample: Make, request_for: For
) -> None:
    samples = [sample(1, reward=1.0), sample(2, length=30, reward=1.0)]
    report = run_step(model, request_for("one", samples, baseline=ZERO, max_sequence_tokens=20))
    made(report)
    assert [outcome.parts for outcome in report.samples] == [("rl",), ()]
    assert report.samples[1].reason == "longer than the limit of 20 tokens"
