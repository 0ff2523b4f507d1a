"""Losses that look at whole replies, against the formulas written out by hand,
a reply at a time, in float64."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from trainer.contracts import BaselineState, LossConfig, SampleInput, StepConfig
from trainer.losses.cispo import cispo_loss
from trainer.losses.combined import TokenBatch, combined_loss
from trainer.losses.geometric import geometric_kept
from trainer.losses.gspo import gspo_loss
from trainer.losses.kl import estimate
from trainer.losses.opsm import opsm_kept
from trainer.losses.segments import reply_mean
from trainer.signals import read_signals, shares

SIZES = (5, 1, 12, 3)
SHARE = 1 / sum(SIZES)


def drawn(seed: int, scale: float = 0.3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """logprob, prox, behaviour [N]; advantage [N], one value a reply."""
    generator = torch.Generator().manual_seed(seed)
    count = sum(SIZES)
    prox = -3 * torch.rand(count, generator=generator, dtype=torch.float64)
    logprob = prox + scale * torch.randn(count, generator=generator, dtype=torch.float64)
    behaviour = prox + scale * torch.randn(count, generator=generator, dtype=torch.float64)
    advantage = torch.randn(len(SIZES), generator=generator, dtype=torch.float64)
    return logprob, prox, behaviour, advantage.repeat_interleave(torch.tensor(SIZES))


def replies(*columns: torch.Tensor) -> list[tuple[list[float], ...]]:
    return list(zip(*([part.tolist() for part in column.split(SIZES)] for column in columns), strict=True))


def clipped(ratio: float, config: LossConfig) -> float:
    return min(max(ratio, 1 - config.clip_low), 1 + config.clip_high)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_a_replys_mean_stands_at_each_of_its_tokens() -> None:
    found = reply_mean(torch.tensor([1.0, 3.0, 5.0]), [2, 1])
    assert found.tolist() == [2.0, 2.0, 5.0]


@pytest.mark.parametrize("seed", range(5))
def test_gspo_is_the_formula(seed: int) -> None:
    config = LossConfig(policy_form="gspo", clip_low=0.05, clip_high=0.08)
    logprob, _, behaviour, advantage = drawn(seed)
    found = gspo_loss(logprob, behaviour, advantage, SIZES, config)
    expected = []
    for now, then, gain in replies(logprob, behaviour, advantage):
        ratio = math.exp(mean([a - b for a, b in zip(now, then, strict=True)]))
        expected += [-min(ratio * gain[0], clipped(ratio, config) * gain[0])] * len(now)
    assert torch.allclose(found.loss, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)
    assert found.kept.all()


def test_gspo_by_replies_has_the_papers_gradient() -> None:
    config = LossConfig(policy_form="gspo", clip_low=0.5, clip_high=0.5)
    logprob, _, behaviour, advantage = drawn(1)
    logprob.requires_grad_()
    found = gspo_loss(logprob, behaviour, advantage, SIZES, config)
    weight = torch.tensor([1 / (len(SIZES) * size) for size in SIZES for _ in range(size)])
    (found.loss * weight).sum().backward()
    expected = []
    for now, then, gain in replies(logprob.detach(), behaviour, advantage):
        ratio = math.exp(mean([a - b for a, b in zip(now, then, strict=True)]))
        inside = ratio * gain[0] <= clipped(ratio, config) * gain[0]
        expected += [-inside * ratio * gain[0] / (len(SIZES) * len(now))] * len(now)
    assert logprob.grad is not None
    assert torch.allclose(logprob.grad, torch.tensor(expected, dtype=torch.float64), atol=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_cispo_is_the_formula_and_loses_no_gradient(seed: int) -> None:
    config = LossConfig(policy_form="cispo")
    logprob, _, behaviour, advantage = drawn(seed, scale=1.0)
    logprob.requires_grad_()
    found = cispo_loss(logprob, behaviour, advantage, config)
    found.loss.sum().backward()
    weights, losses = [], []
    for now, then, gain in zip(logprob.tolist(), behaviour.tolist(), advantage.tolist(), strict=True):
        weight = clipped(math.exp(now - then), config)
        weights.append(-weight * gain)
        losses.append(-weight * gain * now)
    assert torch.allclose(found.loss.detach(), torch.tensor(losses, dtype=torch.float64), rtol=1e-12)
    assert logprob.grad is not None
    assert torch.allclose(logprob.grad, torch.tensor(weights, dtype=torch.float64), rtol=1e-12)
    assert found.clipped.any()
    assert not found.clipped.all()


@pytest.mark.parametrize(
    ("ratio", "advantage", "gspo", "cispo"),
    [
        (1.27, 1.0, -1.27, -1.27),
        (1.29, 1.0, 0.0, -1.28),
        (0.81, -1.0, 0.81, 0.81),
        (0.79, -1.0, 0.0, 0.8),
        (1.29, -1.0, 1.29, 1.28),
        (0.79, 1.0, -0.79, -0.8),
    ],
)
def test_one_token_at_each_clip_edge(ratio: float, advantage: float, gspo: float, cispo: float) -> None:
    """Gradients: GSPO drops what is past its clip, CISPO bounds it."""
    zero, gain = torch.zeros(1, dtype=torch.float64), torch.tensor([advantage], dtype=torch.float64)
    one = torch.tensor([math.log(ratio)], dtype=torch.float64, requires_grad=True)
    gspo_loss(one, zero, gain, [1], LossConfig()).loss.sum().backward()
    other = one.detach().clone().requires_grad_()
    cispo_loss(other, zero, gain, LossConfig()).loss.sum().backward()
    assert one.grad is not None
    assert other.grad is not None
    assert (one.grad.item(), other.grad.item()) == pytest.approx((gspo, cispo), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_opsm_drops_bad_replies_that_the_policy_has_left(seed: int) -> None:
    logprob, _, behaviour, advantage = drawn(seed)
    kept = opsm_kept(logprob, behaviour, advantage, SIZES, 0.02)
    expected = []
    for now, then, gain in replies(logprob, behaviour, advantage):
        gone = mean([b - a for a, b in zip(now, then, strict=True)]) > 0.02
        expected += [not (gone and gain[0] < 0)] * len(now)
    assert kept.tolist() == expected


@pytest.mark.parametrize(
    ("gap", "advantage", "kept"), [(0.51, -1.0, False), (0.5, -1.0, True), (0.51, 1.0, True)]
)
def test_opsm_at_its_edge(gap: float, advantage: float, kept: bool) -> None:
    found = opsm_kept(torch.zeros(2), torch.full((2,), gap), torch.full((2,), advantage), [2], 0.5)
    assert found.tolist() == [kept, kept]


@pytest.mark.parametrize("seed", range(5))
def test_the_geometric_guard_looks_at_whole_replies(seed: int) -> None:
    _, prox, behaviour, _ = drawn(seed, scale=0.05)
    kept = geometric_kept(prox, behaviour, SIZES, low=0.99, high=1.01)
    expected = []
    for then, engine in replies(prox, behaviour):
        ratio = math.exp(mean([a - b for a, b in zip(then, engine, strict=True)]))
        expected += [0.99 <= ratio <= 1.01] * len(then)
    assert kept.tolist() == expected


@pytest.mark.parametrize("kind", ["k1", "k2", "k3"])
def test_estimates_of_a_kl_are_the_formulas(kind: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    ours, theirs = -3 * torch.rand(2, 200, generator=generator, dtype=torch.float64)
    found = estimate(kind, ours, theirs)
    by_hand = {
        "k1": lambda d: -d,
        "k2": lambda d: d * d / 2,
        "k3": lambda d: math.exp(d) - 1 - d,
    }[kind]
    expected = [by_hand(b - a) for a, b in zip(ours.tolist(), theirs.tolist(), strict=True)]
    assert torch.allclose(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-14)


def test_k1_and_k3_have_no_bias_and_k2_has_the_kls_gradient() -> None:
    logits = torch.tensor([0.3, -0.2, 0.9, 0.1], dtype=torch.float64, requires_grad=True)
    other = torch.tensor([0.1, 0.4, 0.3, 0.2], dtype=torch.float64).log()
    logp = logits.log_softmax(0)
    kl = (logp.exp() * (logp - other)).sum()
    p = logp.exp().detach()
    for kind in ("k1", "k3"):
        assert (p * estimate(kind, logp, other)).sum().item() == pytest.approx(kl.item())  # type: ignore[arg-type]
    (true,) = torch.autograd.grad(kl, logits, retain_graph=True)
    (found,) = torch.autograd.grad((p * estimate("k2", logp, other)).sum(), logits, retain_graph=True)
    assert torch.allclose(found, true, atol=1e-12)
    (nothing,) = torch.autograd.grad((p * estimate("k1", logp, other)).sum(), logits)
    assert torch.allclose(nothing, torch.zeros(4, dtype=torch.float64), atol=1e-12)


def tokens(seed: int = 0, scale: float = 0.3, **fields: Any) -> TokenBatch:
    logprob, prox, behaviour, advantage = drawn(seed, scale)
    share = torch.full_like(logprob, SHARE)
    known: dict[str, Any] = {
        "logprob": logprob, "prox": prox, "behaviour": behaviour, "advantage": advantage,
        "rl_share": share, "opd_share": torch.zeros_like(share), "kl_share": share, "teacher": None,
        "teacher_kl": None, "base": None, "sizes": SIZES,
    }  # fmt: skip
    return TokenBatch(**{**known, **fields})


@pytest.mark.parametrize("form", ["gspo", "cispo"])
def test_forms_are_chosen_by_name(form: Any) -> None:
    batch, config = tokens(), LossConfig(policy_form=form)
    alone = (
        gspo_loss(batch.logprob, batch.behaviour, batch.advantage, SIZES, config)
        if form == "gspo"
        else cispo_loss(batch.logprob, batch.behaviour, batch.advantage, config)
    )
    assert combined_loss(batch, config).rl.item() == pytest.approx(alone.loss.sum().item() * SHARE)


def test_an_interpolated_prox_lies_between_the_policy_and_the_sampler_by_staleness() -> None:
    plain = tokens(scale=0.4)
    count = plain.logprob.numel()
    toward = torch.tensor([0.0, 1.0, 0.25] * count, dtype=torch.float64)[:count]
    anchor = (1 - toward) * plain.prox + toward * plain.behaviour
    found = combined_loss(tokens(scale=0.4, toward=toward), LossConfig())
    by_hand = combined_loss(tokens(scale=0.4, prox=anchor), LossConfig())
    assert found.rl.item() == pytest.approx(by_hand.rl.item(), rel=1e-12)
    assert found.rl.item() != pytest.approx(combined_loss(plain, LossConfig()).rl.item(), rel=1e-3)


@pytest.mark.parametrize(
    "guard",
    [{"opsm_delta": 0.0}, {"geometric_guard": "mask", "geometric_low": 0.96, "geometric_high": 1.04}],
)
def test_what_a_guard_drops_makes_the_mean_smaller_not_the_rest_heavier(guard: dict[str, Any]) -> None:
    batch = tokens(seed=2, scale=0.05)
    free = combined_loss(batch, LossConfig())
    held = combined_loss(batch, LossConfig(**guard))
    assert not held.kept.all()
    assert held.kept.any()
    alone = combined_loss(tokens(seed=2, scale=0.05, rl_share=batch.rl_share * held.kept), LossConfig())
    assert held.rl.item() == pytest.approx(alone.rl.item())
    assert held.rl.item() != pytest.approx(free.rl.item())


def test_all_dropped_is_zero_with_a_zero_gradient() -> None:
    batch = tokens()
    batch.logprob.requires_grad_()
    found = combined_loss(batch, LossConfig(geometric_guard="mask", geometric_low=1.0, geometric_high=1.0))
    found.total.backward()
    assert (found.total.item(), found.kept.any().item()) == (0.0, False)
    assert batch.logprob.grad is not None
    assert not batch.logprob.grad.any()


@pytest.mark.parametrize(
    ("aggregation", "weights"),
    [
        ("token", [1 / 8, 1 / 8]),  # DAPO: every token alike
        ("sequence", [1 / 4, 1 / 12]),  # GRPO: every reply alike
        ("constant", [1 / 40, 1 / 40]),  # Dr. GRPO: sum over replies x 20
    ],
)
def test_aggregations_weigh_tokens_as_published(aggregation: Any, weights: list[float]) -> None:
    samples = [
        SampleInput(
            sample_id=str(size),
            prompt_ids=(1,),
            output_ids=(2,) * size,
            output_logprobs=(-1.0,) * size,
            reward=1.0,
        )
        for size in (2, 6)
    ]
    config = StepConfig(loss=LossConfig(aggregation=aggregation, constant_tokens=20))
    signals = read_signals(samples, config, BaselineState(), vocab=10, max_tokens=10)
    assert [share.rl for share in shares(signals, config)] == weights
