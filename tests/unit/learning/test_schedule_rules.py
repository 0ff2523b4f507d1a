"""Staleness, admission and exploration: the rules themselves."""

import pytest

from apps.learning.rules.admission import Intake, room
from apps.learning.rules.staleness import Staleness, of_trajectory, weight
from apps.learning.rules.temperature import Bounds, Move, Seen, adapt

BOUNDS = Bounds(low=0.5, high=1.0, step=0.1)


def test_past_the_bound_a_sample_is_dropped_or_counts_less_and_less() -> None:
    assert [weight(age, Staleness(4)) for age in (0, 4, 5, 9)] == [1.0, 1.0, 0.0, 0.0]
    softer = Staleness(4, past="down_weight")
    assert [weight(age, softer) for age in (4, 5, 6, 8, 9)] == [1.0, 0.5, 0.25, 0.0625, 0.0]


def test_a_trajectory_is_as_old_as_its_first_turn() -> None:
    # started at v3, ended at v5, now v6
    assert of_trajectory([3, 2, 1]) == 3
    assert of_trajectory([None, 0]) is None
    assert of_trajectory([]) is None


@pytest.mark.parametrize(
    ("intake", "left"),
    [
        (Intake(version=0, waiting=0, running=0), 12),  # (2 + 0 + 1) * 4 - (0 + 0)
        (Intake(version=0, waiting=5, running=6), 1),
        (Intake(version=0, waiting=6, running=6), 0),
        (Intake(version=7, waiting=6, running=6), 0),
        (Intake(version=7, waiting=9, running=6), -3),
    ],
)
def test_rollouts_are_admitted_while_there_is_room(intake: Intake, left: int) -> None:
    staleness, batch = 2, 4
    by_hand = (staleness + intake.version + 1) * batch - (intake.accepted(batch) + intake.running)
    assert room(intake, staleness=staleness, batch=batch) == by_hand == left


def test_a_version_makes_room_for_the_batch_that_it_took() -> None:
    before = Intake(version=3, waiting=12, running=0)
    after = Intake(version=4, waiting=8, running=0)
    assert after.accepted(4) == before.accepted(4)
    assert room(after, staleness=2, batch=4) == room(before, staleness=2, batch=4) + 4


def test_the_temperature_rises_where_rewards_are_alike_and_falls_where_ratios_are_noise() -> None:
    alike = Seen(rewards=[1.0] * 8, ess=0.9)
    assert adapt(0.7, alike, BOUNDS) == Move(0.8, "rewards are alike: variance 0.00")
    assert adapt(0.7, Seen(rewards=[-1.0] * 4, ess=None), BOUNDS).temperature == 0.8
    assert adapt(0.7, Seen(rewards=[1.0, -1.0] * 4, ess=0.9), BOUNDS) == Move(0.7, "")
    assert adapt(0.7, Seen(rewards=[1.0, -1.0] * 4, ess=0.3), BOUNDS) == Move(
        0.6, "noisy: effective sample size 0.30"
    )
    # noise outweighs: warmer would be noisier still
    assert adapt(0.7, Seen(rewards=[1.0] * 8, ess=0.3), BOUNDS).temperature == 0.6


def test_the_temperature_stays_within_the_tenants_bounds() -> None:
    warm, cool = Seen(rewards=[1.0] * 8, ess=1.0), Seen(rewards=[], ess=0.1)
    temperature = 0.7
    for _ in range(20):
        temperature = adapt(temperature, warm, BOUNDS).temperature
    assert temperature == 1.0
    for _ in range(20):
        temperature = adapt(temperature, cool, BOUNDS).temperature
    assert temperature == 0.5
    assert adapt(1.6, Seen(rewards=[], ess=None), BOUNDS) == Move(1.0, "brought within the bounds")


def test_a_few_rewards_say_nothing() -> None:
    assert adapt(0.7, Seen(rewards=[1.0] * 3, ess=None), BOUNDS) == Move(0.7, "")
