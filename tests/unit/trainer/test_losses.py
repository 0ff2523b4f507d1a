"""Losses against the formulas written out by hand, a token at a time, in float64."""

from __future__ import annotations

import math

import pytest
import torch

from trainer.contracts import LossConfig
from trainer.losses.combined import TokenBatch, combined_loss
from trainer.losses.distill import distill_advantage, mixture_logprob
from trainer.losses.kl import k3
from trainer.losses.policy import policy_loss


def by_hand(logprob: float, prox: float, behaviour: float, advantage: float, config: LossConfig) -> float:
    low, high = 1 - config.clip_low, 1 + config.clip_high
    if config.policy_form == "plain":
        ratio, weight = math.exp(logprob - behaviour), 1.0
    else:
        ratio, weight = math.exp(logprob - prox), math.exp(prox - behaviour)
        if config.behaviour_cap == "mask" and weight > config.behaviour_mask_above:
            return 0.0
        if config.behaviour_cap == "truncate":
            weight = min(weight, config.behaviour_truncate_at)
        if config.policy_form == "doubly_clipped":
            weight = min(max(weight, 1 - config.clip_low), 1 + config.clip_low)
    objective = min(ratio * advantage, min(max(ratio, low), high) * advantage)
    if config.dual_clip is not None and advantage < 0:
        objective = max(objective, config.dual_clip * advantage)
    return -weight * objective


def random_tokens(count: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    prox = -3 * torch.rand(count, generator=generator, dtype=torch.float64)
    logprob = prox + torch.randn(count, generator=generator, dtype=torch.float64)
    behaviour = prox + 1.5 * torch.randn(count, generator=generator, dtype=torch.float64)
    return logprob, prox, behaviour, torch.randn(count, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("form", ["decoupled", "doubly_clipped", "plain"])
@pytest.mark.parametrize("cap", ["mask", "truncate"])
@pytest.mark.parametrize("dual", [3.0, None])
def test_policy_loss_is_the_formula(form: str, cap: str, dual: float | None) -> None:
    config = LossConfig(policy_form=form, behaviour_cap=cap, dual_clip=dual)  # type: ignore[arg-type]
    logprob, prox, behaviour, advantage = random_tokens(400)
    found = policy_loss(logprob, prox, behaviour, advantage, config)
    expected = [
        by_hand(*row, config)
        for row in zip(*(x.tolist() for x in (logprob, prox, behaviour, advantage)), strict=True)
    ]
    assert torch.allclose(found.loss, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)
    if form != "plain" and cap == "mask":
        assert found.kept.tolist() == ((prox - behaviour).exp() <= 5.0).tolist()
        assert not found.kept.all()
    else:
        assert found.kept.all()


@pytest.mark.parametrize(
    ("ratio", "advantage", "gradient", "clipped"),
    [
        (1.27, 1.0, -1.27, False),
        (1.29, 1.0, 0.0, True),
        (0.81, -1.0, 0.81, False),
        (0.79, -1.0, 0.0, True),
        (1.29, -1.0, 1.29, False),
        (0.79, 1.0, -0.79, False),
        (2.99, -1.0, 2.99, False),
        (3.01, -1.0, 0.0, True),
    ],
)
def test_one_token_at_each_clip_edge(ratio: float, advantage: float, gradient: float, clipped: bool) -> None:
    logprob = torch.tensor([math.log(ratio)], dtype=torch.float64, requires_grad=True)
    zero = torch.zeros(1, dtype=torch.float64)
    found = policy_loss(logprob, zero, zero, torch.tensor([advantage], dtype=torch.float64), LossConfig())
    found.loss.sum().backward()
    assert logprob.grad is not None
    assert logprob.grad.item() == pytest.approx(gradient, abs=1e-12)
    assert found.clipped.tolist() == [clipped]


def test_all_masked_is_zero_with_a_zero_gradient() -> None:
    logprob = torch.zeros(3, requires_grad=True)
    found = policy_loss(logprob, torch.zeros(3), torch.full((3,), -4.0), torch.ones(3), LossConfig())
    found.loss.sum().backward()
    assert found.loss.tolist() == [0.0, 0.0, 0.0]
    assert logprob.grad is not None
    assert logprob.grad.tolist() == [0.0, 0.0, 0.0]


def test_a_ratio_past_all_floats_stays_finite() -> None:
    logprob = torch.tensor([0.0, -2000.0], requires_grad=True)
    found = policy_loss(
        logprob,
        torch.tensor([-2000.0, 0.0]),
        torch.tensor([-2000.0, 0.0]),
        torch.tensor([-1.0, 1.0]),
        LossConfig(),
    )
    found.loss.sum().backward()
    assert found.loss.tolist() == pytest.approx([3.0, 0.0], abs=1e-6)
    assert logprob.grad is not None
    assert torch.isfinite(logprob.grad).all()


def test_distill_advantage_is_clipped_both_ways_and_passes_no_gradient() -> None:
    prox = torch.tensor([-1.0, -1.0, -1.0], requires_grad=True)
    found = distill_advantage(torch.tensor([-0.5, -4.0, -0.0]), prox, 0.75)
    assert found.tolist() == [0.5, -0.75, 0.75]
    assert not found.requires_grad


def test_mixture_is_the_mean_of_probabilities() -> None:
    several = torch.tensor([[0.2, 0.5], [0.6, 0.1]]).log()
    assert mixture_logprob(several).exp().tolist() == pytest.approx([0.4, 0.3])


def test_k3_is_zero_for_equals_positive_otherwise_and_estimates_the_kl() -> None:
    p = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    q = torch.tensor([0.4, 0.4, 0.2], dtype=torch.float64)
    assert k3(p.log(), p.log()).tolist() == [0.0, 0.0, 0.0]
    per_token = k3(p.log(), q.log())
    assert (per_token > 0).all()
    assert (p * per_token).sum().item() == pytest.approx((p * (p / q).log()).sum().item(), abs=1e-12)


def batch(**fields: object) -> TokenBatch:
    count = 4
    logprob, prox, behaviour, advantage = random_tokens(count, seed=3)
    known: dict[str, object] = {
        "logprob": logprob,
        "prox": prox,
        "behaviour": behaviour,
        "advantage": advantage,
        "rl_share": torch.tensor([0.5, 0.5, 0.0, 0.0], dtype=torch.float64),
        "opd_share": torch.tensor([0.0, 1 / 3, 1 / 3, 1 / 3], dtype=torch.float64),
        "kl_share": torch.full((count,), 0.25, dtype=torch.float64),
        "teacher": None,
        "teacher_kl": None,
        "base": None,
        "sizes": (2, 2),
    }
    return TokenBatch(**{**known, **fields})  # type: ignore[arg-type]


def test_combined_is_the_weighted_sum_of_its_parts_each_over_its_own_tokens() -> None:
    config = LossConfig(rl_weight=0.5, opd_weight=2.0, kl_weight=0.1, opd_clip=5.0)
    teacher = torch.tensor([-1.0, -2.0, -0.3, -0.1], dtype=torch.float64)
    base = torch.tensor([-1.1, -0.5, -0.7, -2.0], dtype=torch.float64)
    tokens = batch(teacher=teacher, base=base)
    columns = zip(
        *(
            x.tolist()
            for x in (tokens.logprob, tokens.prox, tokens.behaviour, tokens.advantage, teacher, base)
        ),
        strict=True,
    )
    rl = opd = kl = 0.0
    for index, (logprob, prox, behaviour, advantage, taught, bare) in enumerate(columns):
        if index < 2:
            rl += by_hand(logprob, prox, behaviour, advantage, config) / 2
        if index > 0:
            opd += by_hand(logprob, prox, behaviour, max(-5.0, min(5.0, taught - prox)), config) / 3
        kl += (math.exp(bare - logprob) - 1 - (bare - logprob)) / 4
    found = combined_loss(tokens, config)
    assert (found.rl.item(), found.opd.item(), found.kl.item()) == pytest.approx((rl, opd, kl), rel=1e-12)
    assert found.total.item() == pytest.approx(0.5 * rl + 2 * opd + 0.1 * kl, rel=1e-12)


def test_a_token_without_a_teacher_is_left_out_not_counted_as_zero() -> None:
    teacher = torch.tensor([float("nan"), -2.0, -0.3, -0.1], dtype=torch.float64)
    found = combined_loss(batch(teacher=teacher), LossConfig(rl_weight=0.0))
    assert math.isfinite(found.opd.item())
    assert found.opd.item() != 0.0


def test_a_full_kl_takes_the_place_of_the_sampled_part() -> None:
    kl = torch.tensor([9.0, 0.3, 0.6, 0.9], dtype=torch.float64)
    found = combined_loss(batch(teacher_kl=kl), LossConfig())
    assert found.opd.item() == pytest.approx(0.6)
