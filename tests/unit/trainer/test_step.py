"""Whole steps on a tiny model: what they make, what they refuse, and that they are the same every time."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from trainer.artefact import MANIFEST, OPTIMIZER, WEIGHTS
from trainer.contracts import (
    BaselineState,
    InitRequest,
    LoraSpec,
    ProgressEvent,
    SampleInput,
    StepReport,
    StepRequest,
)
from trainer.model.policy import PolicyModel
from trainer.step import run_init, run_step

from .conftest import HINTED, PROMPT

Make = Callable[..., SampleInput]
For = Callable[..., StepRequest]
ZERO = BaselineState(mean=0.0, count=1.0)
HINT = (HINTED,)


def made(report: StepReport) -> Path:
    assert report.outcome == "made", report.reason
    assert report.artefact is not None
    return Path(report.artefact.dir)


def nothing_left(request: StepRequest) -> bool:
    return not list(Path(request.out_dir).parent.iterdir())


def test_a_step_writes_a_whole_version_and_says_what_it_did(
    model: PolicyModel, sample: Make, request_for: For
) -> None:
    samples = [sample(1, reward=1.0, staleness=2), sample(2, reward=-1.0, hint_prompt_ids=HINT)]
    report = run_step(model, request_for("one", samples, probe_ids=(PROMPT,), baseline=ZERO))
    directory = made(report)
    artefact = report.artefact
    assert artefact is not None
    assert sorted(path.name for path in directory.iterdir()) == [
        "adapter_config.json", "adapter_model.safetensors", "manifest.json", "optimizer.state",
    ]  # fmt: skip
    assert artefact.files == {
        name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in artefact.files
    }
    both = (directory / WEIGHTS).read_bytes() + (directory / "adapter_config.json").read_bytes()
    assert artefact.hash == hashlib.sha256(both).hexdigest()
    manifest = json.loads((directory / MANIFEST).read_text())
    assert (manifest["hash"], manifest["parent_hash"], manifest["step"]) == (artefact.hash, None, 1)
    assert manifest["files"] == artefact.files
    assert len(artefact.probe[0].logprobs) == len(PROMPT) - 1
    assert artefact.probe[0].logprobs != artefact.probe[0].base_logprobs
    assert [outcome.parts for outcome in report.samples] == [("rl",), ("rl", "opd")]
    assert [outcome.advantage for outcome in report.samples] == [1.0, -1.0]
    assert report.staleness == {"0": 1, "2": 1}
    assert report.baseline.count == pytest.approx(0.9 * 1.9 + 1)
    assert (report.metrics["tokens"], report.metrics["tokens_opd"], report.metrics["step"]) == (12, 6, 1)
    assert report.metrics["step_logprob_abs_diff"] > 1e-3
    assert report.metrics["grad_norm"] > 0


def test_a_reply_sampled_at_its_temperature_with_no_step_since_has_ratio_one(
    model: PolicyModel, sample: Make, request_for: For
) -> None:
    report = run_step(model, request_for("one", [sample(1, reward=1.0, temperature=0.7)], baseline=ZERO))
    assert report.metrics["train_rollout_logprob_abs_diff"] < 1e-5
    assert report.metrics["ratio_mean"] == pytest.approx(1.0, abs=1e-5)
    assert report.metrics["ess"] == pytest.approx(1.0, abs=1e-6)
    assert (report.metrics["mask_fraction"], report.metrics["clip_fraction"]) == (0.0, 0.0)


def test_learning_rate_zero_changes_nothing(model: PolicyModel, sample: Make, request_for: For) -> None:
    request = request_for("one", [sample(1, reward=1.0, hint_prompt_ids=HINT)], lr=0.0, baseline=ZERO)
    report = run_step(model, request)
    assert (report.outcome, report.code, report.artefact) == ("no_op", "lr_zero", None)
    assert report.baseline == ZERO
    assert report.metrics["ratio_mean"] == pytest.approx(1.0, abs=1e-5)
    assert nothing_left(request)


def test_equal_rewards_without_a_hint_are_no_signal_and_say_so(
    model: PolicyModel, sample: Make, request_for: For
) -> None:
    request = request_for("one", [sample(seed, reward=-1.0) for seed in range(3)])
    report = run_step(model, request)
    assert (report.outcome, report.code) == ("no_op", "no_signal")
    assert report.reason == "no signal: every reward equals the baseline and there is no hint"
    assert report.baseline.mean == -1.0
    assert nothing_left(request)


def test_an_empty_or_useless_batch_says_why(model: PolicyModel, sample: Make, request_for: For) -> None:
    assert run_step(model, request_for("none", [])).reason == "no signal: no samples"
    report = run_step(model, request_for("cut", [sample(1, reward=1.0, truncated=True)]))
    assert report.reason == "no signal: cut by the length limit: no reward; no hint"
    assert report.samples[0].parts == ()


KINDS = ["sampled", "full_kl", "top_k", "top_k_select"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_teacher_that_is_the_student_has_nothing_to_say(
    model: PolicyModel, sample: Make, request_for: For, kind: str
) -> None:
    one = sample(1, hint_prompt_ids=(PROMPT,))
    request = request_for("one", [one], loss_opd_kind=kind)
    report = run_step(model, request)
    assert (report.outcome, report.code) == ("no_op", "no_signal")
    assert abs(report.samples[0].opd_advantage or 0.0) < 1e-5
    assert nothing_left(request)


def test_the_policy_may_teach_itself_given_the_hint(
    model: PolicyModel, sample: Make, request_for: For
) -> None:
    parent = made(run_step(model, request_for("one", [sample(1, hint_prompt_ids=HINT)], lr=5e-3)))
    same = [sample(1, hint_prompt_ids=(PROMPT,))]
    base = run_step(model, request_for("base", same, parent_dir=str(parent)))
    assert abs(base.samples[0].opd_advantage or 0.0) > 1e-3
    policy = run_step(model, request_for("policy", same, parent_dir=str(parent), loss_opd_teacher="policy"))
    assert (policy.code, abs(policy.samples[0].opd_advantage or 0.0) < 1e-5) == ("no_signal", True)


@pytest.mark.parametrize("kind", KINDS)
def test_distillation_moves_the_policy_toward_its_teacher(
    model: PolicyModel, sample: Make, request_for: For, kind: str
) -> None:
    samples = [sample(seed, hint_prompt_ids=HINT, output_logprobs=None) for seed in range(4)]
    parent, losses = None, []
    for step in range(4):
        request = request_for(f"{step}", samples, parent_dir=parent, loss_opd_kind=kind, loss_opd_clip=5.0)
        report = run_step(model, request)
        parent = str(made(report))
        losses.append(report.metrics["opd_advantage_mean" if kind == "sampled" else "opd_kl_mean"])
    if kind != "sampled":
        assert losses == sorted(losses, reverse=True)
    else:
        # the policy likes these tokens more than its teacher does, and comes down
        assert losses[0] < 0
        assert losses == sorted(losses)


def test_more_reward_makes_a_reply_more_likely(model: PolicyModel, sample: Make, request_for: For) -> None:
    good, bad = sample(1, reward=1.0), sample(2, reward=-1.0)
    sequences = tuple(PROMPT + one.output_ids for one in (good, bad))
    report = run_step(model, request_for("one", [good, bad], probe_ids=sequences, baseline=ZERO))
    made(report)
    assert report.artefact is not None
    gains = [
        sum(probe.logprobs[len(PROMPT) - 1 :]) - sum(probe.base_logprobs[len(PROMPT) - 1 :])
        for probe in report.artefact.probe
    ]
    assert gains[0] > 0 > gains[1]


def test_the_same_request_gives_the_same_bytes(model: PolicyModel, sample: Make, request_for: For) -> None:
    samples = [sample(1, reward=1.0), sample(2, reward=-1.0, hint_prompt_ids=HINT)]
    first = made(run_step(model, request_for("a", samples, seed=3)))
    run_step(model, request_for("between", samples, seed=4, lr=0.5))
    second = made(run_step(model, request_for("b", samples, seed=3)))
    for name in (WEIGHTS, OPTIMIZER, "adapter_config.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_a_restart_between_two_steps_changes_nothing(
    model: PolicyModel, sample: Make, request_for: For, tiny_directory: Path
) -> None:
    batch_1, batch_2 = [sample(1, hint_prompt_ids=HINT)], [sample(2, hint_prompt_ids=HINT)]
    parent = made(run_step(model, request_for("1", batch_1)))
    straight = made(run_step(model, request_for("2", batch_2, parent_dir=str(parent))))
    anew = PolicyModel(tiny_directory, ranks=model.ranks, dtype=torch.float32)
    resumed = made(run_step(anew, request_for("3", batch_2, parent_dir=str(parent))))
    for name in (WEIGHTS, OPTIMIZER):
        assert (straight / name).read_bytes() == (resumed / name).read_bytes()
    assert json.loads((resumed / MANIFEST).read_text())["step"] == 2
    # the optimiser's state is part of it: without the moments the second step is another one
    amnesiac = parent.parent / "amnesiac"
    shutil.copytree(parent, amnesiac)
    (amnesiac / MANIFEST).unlink()
    other = made(run_step(model, request_for("4", batch_2, parent_dir=str(amnesiac))))
    assert (other / WEIGHTS).read_bytes() != (straight / WEIGHTS).read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_micro_batches_change_nothing_but_memory(
    model: PolicyModel, sample: Make, request_for: For, kind: str
) -> None:
    samples = [sample(s, length=3 + 2 * s, reward=s - 2.0, hint_prompt_ids=HINT) for s in range(5)]
    reports = [
        run_step(
            model, request_for(f"{budget}", samples, loss_opd_kind=kind, baseline=ZERO, token_budget=budget)
        )
        for budget in (16, 4096)
    ]
    for name in ("loss", "loss_rl", "loss_opd", "grad_norm", "step_logprob_abs_diff"):
        assert reports[0].metrics[name] == pytest.approx(reports[1].metrics[name], rel=1e-3, abs=1e-6)


def test_several_updates_leave_the_ratio_to_prox(model: PolicyModel, sample: Make, request_for: For) -> None:
    samples = [sample(s, reward=1.0 if s % 2 else -1.0) for s in range(6)]
    report = run_step(model, request_for("one", samples, updates=3, baseline=ZERO))
    made(report)
    assert report.artefact is not None
    assert report.artefact.step == 3
    assert {outcome.tokens for outcome in report.samples} == {6}


def test_several_epochs_leave_the_ratio_to_prox_and_the_gauge_shows_it(
    model: PolicyModel, sample: Make, request_for: For
) -> None:
    samples = [sample(1, reward=1.0), sample(2, reward=-1.0)]
    once = run_step(model, request_for("once", samples, baseline=ZERO, lr=0.02))
    twice = run_step(model, request_for("twice", samples, baseline=ZERO, lr=0.02, epochs=4))
    made(once)
    made(twice)
    assert once.metrics["clip_fraction"] == 0.0
    assert twice.metrics["clip_fraction"] > 0.3  # the drift bound of that measure


def test_a_learning_rate_too_low_changes_next_to_nothing(
    model: PolicyModel, sample: Make, request_for: For
) -> None:
    samples = [sample(1, reward=1.0), sample(2, reward=-1.0)]
    low = run_step(model, request_for("low", samples, baseline=ZERO, lr=1e-6))
    usual = run_step(model, request_for("usual", samples, baseline=ZERO, lr=4e-3))
    made(low)
    assert 0.0 < low.metrics["step_logprob_abs_diff"] < 1e-3  # the drift bound of that measure
    assert usual.metrics["step_logprob_abs_diff"] > 50 * low.metrics["step_logprob_abs_diff"]


def test_rewards_that_never_vary_end_in_no_signal(model: PolicyModel, sample: Make, request_for: For) -> None:
    """A judge that is pleased by anything: the advantage goes to 0 and nothing more is learned from it."""
    baseline, seen = BaselineState(mean=0.0, count=1.0), []
    for number in range(60):
        samples = [sample(seed, reward=1.0) for seed in range(4)]
        report = run_step(model, request_for(f"{number}", samples, baseline=baseline, dry_run=True))
        seen.append(report.metrics["advantage_abs_mean"])
        baseline = BaselineState(mean=baseline.mean, count=baseline.count)
        for _ in samples:
            count = 0.9 * baseline.count + 1
            baseline = BaselineState(
                mean=(baseline.mean or 0.0) + (1.0 - (baseline.mean or 0.0)) / count, count=count
            )
        if report.code == "no_signal":
            break
    assert seen[0] == 1.0
    assert seen == sorted(seen, reverse=True)
    assert report.code == "no_signal"


@pytest.mark.parametrize("kind", ["top_k", "top_k_select"])
def test_several_updates_compare_with_the_policy_as_the_step_began(
    model: PolicyModel, sample: Make, request_for: For, kind: str
) -> None:
    samples = [sample(s, hint_prompt_ids=HINT) for s in range(4)]
    report = run_step(model, request_for("one", samples, updates=2, loss_opd_kind=kind, lr=0.05))
    made(report)
    assert report.metrics["opd_kl_mean"] > 0


def test_an_interpolated_prox_goes_by_each_samples_staleness(
    model: PolicyModel, sample: Make, request_for: For
) -> None:
    def loss(staleness: int, **fields: object) -> float:
        on_policy = sample(1, length=8)
        assert on_policy.output_logprobs is not None
        gaps = (-0.5, 0.5, -0.1, 0.1, -0.9, 0.9, 0.3, -0.3)
        moved = [min(0.0, said + gap) for said, gap in zip(on_policy.output_logprobs, gaps, strict=True)]
        off = SampleInput.from_json(
            {**on_policy.to_json(), "output_logprobs": moved, "reward": 1.0, "staleness": staleness}
        )
        request = request_for("r", [off], baseline=ZERO, dry_run=True, min_ess=0.0, **fields)
        return run_step(model, request).metrics["loss"]

    fresh, plain = loss(0), loss(0, loss_policy_form="plain")
    assert loss(0, loss_prox="interpolated") == pytest.approx(fresh)
    # one step back the anchor is the sampler, so the weight is 1 and the ratio is the whole of it
    assert loss(1, loss_prox="interpolated") == pytest.approx(plain)
    assert loss(1) == pytest.approx(fresh)
    assert plain != pytest.approx(fresh, rel=1e-3)


@pytest.mark.parametrize("form", ["gspo", "cispo"])
@pytest.mark.parametrize("aggregation", ["token", "sequence", "constant"])
def test_every_form_makes_a_step(
    model: PolicyModel, sample: Make, request_for: For, form: str, aggregation: str
) -> None:
    samples = [sample(1, reward=1.0), sample(2, reward=-1.0, hint_prompt_ids=HINT)]
    report = run_step(
        model,
        request_for(
            "one",
            samples,
            loss_policy_form=form,
            loss_aggregation=aggregation,
            loss_kl_weight=0.1,
            baseline=ZERO,
        ),
    )
    made(report)
    assert report.metrics["geometric_outside_fraction"] == 0.0


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


def test_a_step_from_an_earlier_version_starts_from_its_own_optimiser_state(
    model: PolicyModel, sample: Make, request_for: For
) -> None:
    def step(name: str, parent: Path | None, number: int) -> Path:
        fields = {"parent_dir": str(parent)} if parent else {}
        return made(run_step(model, request_for(name, [sample(number, hint_prompt_ids=HINT)], **fields)))

    fifth = step("v5", None, 1)
    sixth = step("v6", fifth, 2)
    step("v7", sixth, 3)
    again = step("v8", fifth, 2)  # rolled back to v5, and the same turns once more
    for name in (WEIGHTS, OPTIMIZER):
        assert (again / name).read_bytes() == (sixth / name).read_bytes(), name
        assert (again / name).read_bytes() != (fifth / name).read_bytes(), name


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


def test_progress_is_told_phase_by_phase(model: PolicyModel, sample: Make, request_for: For) -> None:
    events: list[ProgressEvent] = []
    run_step(model, request_for("one", [sample(1, hint_prompt_ids=HINT)]), events.append)
    phases = list(dict.fromkeys(event.phase for event in events))
    assert phases == ["load", "teacher", "prox", "learn", "check", "write"]
    learn = [event.done for event in events if event.phase == "learn"]
    assert learn == [0, 6]


def test_a_fresh_adapter_answers_as_the_base_and_can_be_a_parent(
    model: PolicyModel, sample: Make, request_for: For, tmp_path: Path
) -> None:
    request = InitRequest(run_id="i", out_dir=str(tmp_path / "zero"), seed=5, probe_ids=(PROMPT,))
    report = run_init(model, request)
    zero = made(report)
    assert report.artefact is not None
    assert (report.artefact.step, report.artefact.parent_hash) == (0, None)
    assert report.artefact.probe[0].logprobs == report.artefact.probe[0].base_logprobs
    samples = [sample(1, hint_prompt_ids=HINT)]
    child = made(run_step(model, request_for("child", samples, parent_dir=str(zero), seed=5)))
    orphan = made(run_step(model, request_for("orphan", samples, seed=5)))
    assert (child / WEIGHTS).read_bytes() == (orphan / WEIGHTS).read_bytes()


def test_a_dry_run_reports_and_writes_nothing(model: PolicyModel, sample: Make, request_for: For) -> None:
    samples = [sample(1, reward=1.0, hint_prompt_ids=HINT)]
    request = request_for("one", samples, dry_run=True, baseline=ZERO)
    report = run_step(model, request)
    assert (report.outcome, report.code, report.baseline) == ("no_op", "dry_run", ZERO)
    assert report.metrics["grad_norm"] > 0
    assert nothing_left(request)


def test_a_sample_over_the_length_bound_is_left_out(
    model: PolicyModel, sample: Make, request_for: For
) -> None:
    samples = [sample(1, reward=1.0), sample(2, length=30, reward=1.0)]
    report = run_step(model, request_for("one", samples, baseline=ZERO, max_sequence_tokens=20))
    made(report)
    assert [outcome.parts for outcome in report.samples] == [("rl",), ()]
    assert report.samples[1].reason == "longer than the limit of 20 tokens"


def test_a_schedule_follows_the_lineage_through_restarts(
    model: PolicyModel, sample: Make, request_for: For
) -> None:
    parent, rates = None, []
    for step in range(4):
        fields = {"warmup_steps": 2, "schedule": "linear", "schedule_steps": 4, "lr_floor": 0.5, "lr": 1e-3}
        report = run_step(
            model, request_for(f"{step}", [sample(step, hint_prompt_ids=HINT)], parent_dir=parent, **fields)
        )
        parent = str(made(report))
        rates.append(report.metrics["lr"])
    assert rates == pytest.approx([5e-4, 1e-3, 1e-3, 8.75e-4])
