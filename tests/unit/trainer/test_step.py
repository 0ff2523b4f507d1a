"""Whole steps on a tiny model: what they make, what they refuse, and that they are the same every time."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import torch

from trainer.artefact import MANIFEST, OPTIMIZER, WEIGHTS
from trainer.contracts import (
    BaselineState,
    InitRequest,
    ProgressEvent,
)
from trainer.model.policy import PolicyModel
from trainer.step import run_init, run_step

from .conftest import PROMPT
from .steps import HINT, ZERO, For, Make, made, nothing_left


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


@pytest.mark.parametrize(
    "case",
    [
        (1, BaselineState(), "one verdict alone has nothing to be compared with yet"),
        (3, BaselineState(), "verdicts that are all alike have nothing to be compared with yet"),
        (1, BaselineState(mean=-1.0, count=1.0), "every verdict is as good as what it is compared with"),
        (1, BaselineState(prior_mean=-1.0), "every verdict is as good as what it is compared with"),
    ],
)
def test_equal_rewards_without_a_hint_are_no_signal_and_say_what_would_be(
    model: PolicyModel, sample: Make, request_for: For, case: tuple[int, BaselineState, str]
) -> None:
    verdicts, before, why = case
    request = request_for("one", [sample(seed, reward=-1.0) for seed in range(verdicts)], baseline=before)
    report = run_step(model, request)
    assert (report.outcome, report.code) == ("no_op", "no_signal")
    assert report.reason == f"no signal: {why}; one that differs, or a correction in words, teaches"
    assert report.baseline.mean == -1.0
    assert nothing_left(request)


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
