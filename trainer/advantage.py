"""Rewards into advantages: what a reply is compared with.

A user's turn has no group of replies to the same prompt, so by default (`ema`) it is compared with the
policy's own moving average, shrunk to the population's mean while the policy has few rewards of its own.
`batch` compares with the samples it is trained with. Rollouts of one task are compared with each other: over
all their turns (`group`, arXiv
2402.03300) or turn by turn (`step`: outcome + process reward, each step index apart, so that a turn late in a
task is not judged by what early turns usually get).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from trainer.contracts import BaselineState, StepConfig

SPREAD_FLOOR = 1e-6
"""A standard deviation under this is rounding: equal rewards have no advantage, however it is scaled."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A reward (outcome + process) and what it belongs to."""

    reward: float
    group: str
    step: int


def advantages(scored: Sequence[Scored], state: BaselineState, config: StepConfig) -> list[float | None]:
    """One for each, in order; None where its group has no other member to compare it with."""
    if config.advantage == "ema":
        middle = baseline_value(state, [one.reward for one in scored], config)
        return [one.reward - middle for one in scored]
    keys = [_key(one, index, config) for index, one in enumerate(scored)]
    members: dict[Hashable, list[float]] = {}
    for one, key in zip(scored, keys, strict=True):
        members.setdefault(key, []).append(one.reward)
    alone = 1 if config.advantage != "batch" else 0
    return [
        None
        if len(members[key]) <= alone
        else _compared(one.reward, members[key], normalise=config.normalise)
        for one, key in zip(scored, keys, strict=True)
    ]


def baseline_value(state: BaselineState, rewards: Sequence[float], config: StepConfig) -> float:
    """What a reward is compared with. Nothing known of policy or population: the batch's own mean, so that a
    first batch of equal rewards (or of one) says nothing instead of pushing everything one way."""
    own = state.count if state.mean is not None else 0.0
    prior = config.baseline_prior_weight if state.prior_mean is not None else 0.0
    if own + prior == 0:
        return sum(rewards) / len(rewards) if rewards else 0.0
    return (own * (state.mean or 0.0) + prior * (state.prior_mean or 0.0)) / (own + prior)


def updated_baseline(state: BaselineState, rewards: Sequence[float], config: StepConfig) -> BaselineState:
    """The moving average after these rewards, in their order; unbiased from the first one on."""
    mean, count = state.mean, state.count if state.mean is not None else 0.0
    for reward in rewards:
        count = config.baseline_decay * count + 1
        mean = reward if mean is None else mean + (reward - mean) / count
    return BaselineState(mean=mean, count=count, prior_mean=state.prior_mean)


def _key(one: Scored, index: int, config: StepConfig) -> Hashable:
    if config.advantage == "batch":
        return ""
    # a sample of no group is compared with nobody
    group: Hashable = one.group or index
    return (group, one.step) if config.advantage == "step" else group


def _compared(reward: float, all_rewards: Sequence[float], *, normalise: bool) -> float:
    mean = sum(all_rewards) / len(all_rewards)
    if not normalise:
        return reward - mean
    spread = math.sqrt(sum((other - mean) ** 2 for other in all_rewards) / len(all_rewards))
    return (reward - mean) / spread if spread > SPREAD_FLOOR else 0.0
