"""Reward minus a baseline that a single reply can be compared with.

There is no group of replies to the same prompt, so the baseline is the policy's own moving average, shrunk to
the population's mean while the policy has few rewards of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainer.contracts import BaselineState, StepConfig


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
