from __future__ import annotations

import pytest

from trainer.advantage import baseline_value, updated_baseline
from trainer.contracts import BaselineState, StepConfig

CONFIG = StepConfig(baseline_decay=0.9, baseline_prior_weight=4.0)


@pytest.mark.parametrize("rewards", [[1.0], [-1.0, -1.0, -1.0]])
def test_a_first_batch_of_equal_rewards_is_compared_with_itself(rewards: list[float]) -> None:
    assert baseline_value(BaselineState(), rewards, CONFIG) == rewards[0]


def test_no_rewards_at_all_have_a_baseline_of_zero() -> None:
    assert baseline_value(BaselineState(), [], CONFIG) == 0.0


def test_a_new_policy_starts_at_the_populations_mean() -> None:
    assert baseline_value(BaselineState(prior_mean=0.5), [1.0], CONFIG) == 0.5


def test_the_policys_own_mean_outweighs_the_population_as_rewards_come() -> None:
    state = BaselineState(mean=1.0, count=4.0, prior_mean=0.0)
    assert baseline_value(state, [], CONFIG) == 0.5
    assert baseline_value(BaselineState(mean=1.0, count=12.0, prior_mean=0.0), [], CONFIG) == 0.75


def test_the_average_is_unbiased_from_the_first_reward_and_its_count_saturates() -> None:
    one = updated_baseline(BaselineState(prior_mean=0.25), [1.0], CONFIG)
    assert (one.mean, one.count, one.prior_mean) == (1.0, 1.0, 0.25)
    two = updated_baseline(one, [0.0], CONFIG)
    assert two.mean == pytest.approx(0.9 / 1.9)
    many = updated_baseline(two, [1.0] * 500, CONFIG)
    assert many.count == pytest.approx(10.0)
    assert many.mean == pytest.approx(1.0)


def test_always_the_same_reward_has_no_advantage_left() -> None:
    state = updated_baseline(BaselineState(), [1.0] * 50, CONFIG)
    assert 1.0 - baseline_value(state, [1.0], CONFIG) == pytest.approx(0.0, abs=1e-12)
