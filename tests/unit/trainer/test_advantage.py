from __future__ import annotations

import pytest

from trainer.advantage import Scored, advantages, baseline_value, updated_baseline
from trainer.contracts import BaselineState, SampleInput, StepConfig

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


def test_the_average_holds_the_largest_rewards_that_a_sample_may_have() -> None:
    largest = SampleInput(sample_id="a", prompt_ids=(1,), output_ids=(2,), reward=1.0, outcome=1e3)
    assert largest.total_reward == 1001.0
    assert updated_baseline(BaselineState(), [largest.total_reward], CONFIG).mean == 1001.0


def test_always_the_same_reward_has_no_advantage_left() -> None:
    state = updated_baseline(BaselineState(), [1.0] * 50, CONFIG)
    assert 1.0 - baseline_value(state, [1.0], CONFIG) == pytest.approx(0.0, abs=1e-12)


ROLLOUTS = [
    Scored(1.0, "a", 0), Scored(0.0, "a", 1), Scored(0.0, "a", 0), Scored(-2.0, "a", 1), Scored(5.0, "b", 0),
    Scored(3.0, "", 0),
]  # fmt: skip


def test_by_default_a_reward_is_compared_with_the_moving_average() -> None:
    state = BaselineState(mean=0.5, count=100.0)
    assert advantages(ROLLOUTS[:2], state, CONFIG) == [0.5, -0.5]


def test_a_batch_is_compared_with_its_own_mean() -> None:
    config = StepConfig(advantage="batch")
    assert advantages([Scored(1.0, "", 0), Scored(0.0, "x", 3)], BaselineState(), config) == [0.5, -0.5]
    assert advantages([Scored(1.0, "", 0)], BaselineState(), config) == [0.0]
    assert advantages([], BaselineState(), config) == []


def test_rollouts_of_a_task_are_compared_with_each_other_and_a_lone_one_with_nobody() -> None:
    found = advantages(ROLLOUTS, BaselineState(), StepConfig(advantage="group"))
    assert found == [1.25, 0.25, 0.25, -1.75, None, None]


def test_or_turn_by_turn() -> None:
    found = advantages(ROLLOUTS, BaselineState(), StepConfig(advantage="step"))
    assert found == [0.5, 1.0, -0.5, -1.0, None, None]


def test_normalised_advantages_have_a_spread_of_one_and_equal_rewards_none() -> None:
    config = StepConfig(advantage="step", normalise=True)
    assert advantages(ROLLOUTS[:4], BaselineState(), config) == [1.0, 1.0, -1.0, -1.0]
    equal = [Scored(0.1 + 0.2, "a", 0), Scored(0.3, "a", 0)]
    assert advantages(equal, BaselineState(), config) == [0.0, 0.0]
