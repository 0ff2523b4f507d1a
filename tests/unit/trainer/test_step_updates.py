"""Several updates, epochs, forms and learning rates of a step, and steps along a lineage."""

from __future__ import annotations

import pytest

from trainer.contracts import (
    BaselineState,
    SampleInput,
)
from trainer.model.policy import PolicyModel
from trainer.step import run_step

from .steps import HINT, ZERO, For, Make, made


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
