"""Judges against people: the figures by hand."""

import pytest

from apps.conversations.models import Feedback
from apps.judging.agreement import agreed, agreement, kappa
from kernel.tenancy import tenant_scope
from tests.apps.learning.ledger import add_turn, settle
from tests.tenants import Somebody


@pytest.mark.parametrize(
    ("pairs", "share", "expected"),
    [
        # Cohen's own kind of table: p_o = (20 + 15) / 50 = 0.7, p_e = 0.5 * 0.6 + 0.5 * 0.4 = 0.5
        ({(1, 1): 20, (1, -1): 5, (-1, 1): 10, (-1, -1): 15}, 0.7, 0.4),
        ({(1, 1): 4, (-1, -1): 6}, 1.0, 1.0),
        ({(1, -1): 5, (-1, 1): 5}, 0.0, -1.0),
        ({(1, 1): 1, (1, -1): 1, (-1, 1): 1, (-1, -1): 1}, 0.5, 0.0),
        ({(1, 1): 7}, 1.0, None),
        ({}, 0.0, None),
    ],
)  # fmt: skip
def test_kappa_by_hand(pairs: dict[tuple[int, int], int], share: float, expected: float | None) -> None:
    assert agreed(pairs) == pytest.approx(share, abs=1e-12)
    found = kappa(pairs)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))


def test_kappa_of_three_scores_by_hand() -> None:
    pairs = {(1, 1): 3, (1, 0): 1, (1, -1): 1, (0, 0): 2, (0, 1): 1, (-1, -1): 2}
    # people 5, 3, 2; judge 4, 3, 3; p_o = 7/10, p_e = (5*4 + 3*3 + 2*3) / 100 = 0.35
    assert kappa(pairs) == pytest.approx(0.35 / 0.65, abs=1e-12)


def test_each_judge_version_is_held_against_the_latest_score_of_a_person(somebody: Somebody) -> None:
    said = [(1, 1), (1, 1), (-1, 1), (-1, -1)]  # (person, judge)
    with tenant_scope(somebody.tenant.id):
        for person, reward in said:
            turn = add_turn(somebody)
            settle(turn, reward=reward)
            Feedback.objects.create(turn=turn, user=somebody.user, score=-person)
            Feedback.objects.create(turn=turn, user=somebody.user, score=None, correction="Say it in French.")
            Feedback.objects.create(turn=turn, user=somebody.user, score=person)
        settle(add_turn(somebody))  # nobody said anything
        (found,) = agreement(policy_id=somebody.policy.id)
    assert (found.judge, found.prompt_version, found.turns, found.agreed) == ("test", "1", 4, 0.75)
    # p_e = (2*3 + 2*1) / 16 = 0.5
    assert found.kappa == pytest.approx(0.5)
