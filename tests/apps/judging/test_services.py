"""Judging settles once: votes and hints as rows, a majority, a dead letter, and the call for a sample."""

import threading

import pytest
from django.db import connection
from django.utils import timezone

from apps.conversations.models import Feedback, Turn, TurnKind, TurnState
from apps.judging import services
from apps.judging.judge import CastVote, FoundHint, Opinion, TurnView, select_hints, strict_majority
from apps.judging.models import Hint, Judgement, JudgementState, Vote
from apps.judging.rules import Rules
from apps.judging.selectors import verdict
from apps.judging.services.judgements import identity_of, judge_all
from kernel.errors import Conflict
from kernel.tenancy import tenant_scope
from tests.apps.judging.told import Told
from tests.apps.learning.ledger import add_turn, settle, unsent
from tests.tenants import Somebody, add_somebody

SAMPLE = "workers.samples.make_sample"
JUDGE = "workers.judging.judge_turn"


def judge(turn: Turn, backend: Told) -> Judgement | None:
    with tenant_scope(turn.tenant_id):
        return services.judge(turn_id=turn.id, backend=backend)


def test_votes_and_hints_are_rows_and_the_sample_is_asked_for(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    backend = Told(
        scores=(-1, None, -1),
        hints=("Answer in one short sentence.", "short", "answer in ONE short sentence"),
    )
    judgement = judge(turn, backend)
    assert judgement is not None
    assert (judgement.state, judgement.reward, judgement.attempts) == (JudgementState.SETTLED, -1, 1)
    assert backend.asked[0].next_state == ({"role": "user", "content": "Too long."},)
    with tenant_scope(somebody.tenant.id):
        votes = list(Vote.objects.order_by("number").values_list("number", "score", "abstained_because"))
        hints = list(Hint.objects.order_by("number").values_list("text", "accepted", "reason"))
    assert votes == [(1, -1, ""), (2, None, "answer is not JSON"), (3, -1, "")]
    assert hints == [
        ("Answer in one short sentence.", True, ""),
        ("short", False, "too short"),
        ("answer in ONE short sentence", False, "says the same as another"),
    ]
    assert [message.kwargs["turn_id"] for message in unsent(SAMPLE)] == [str(turn.id)]


def test_judged_again_nothing_changes_and_nobody_is_asked(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    backend = Told()
    judge(turn, backend)
    assert judge(turn, backend) is None
    assert len(backend.asked) == 1
    with tenant_scope(somebody.tenant.id):
        assert (Judgement.objects.count(), Vote.objects.count()) == (1, 3)


@pytest.mark.django_db(transaction=True)
def test_delivered_to_two_workers_at_once_it_is_asked_once() -> None:
    somebody = add_somebody()
    turn = add_turn(somebody)
    backend = Told(pause_s=0.5)

    def work() -> None:
        judge(turn, backend)
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(backend.asked) == 1
    with tenant_scope(somebody.tenant.id):
        assert (Judgement.objects.count(), Vote.objects.count()) == (1, 3)


@pytest.mark.parametrize(
    "fields",
    [{"kind": TurnKind.EVALUATION}, {"side": True}, {"state": TurnState.ABORTED}, {"state": TurnState.FAILED},
     {"next_state": None, "next_state_at": None}],
)  # fmt: skip
def test_a_turn_that_is_not_judged_goes_straight_to_its_reason(
    somebody: Somebody, fields: dict[str, object]
) -> None:
    turn = add_turn(somebody, **fields)
    backend = Told()
    assert judge(turn, backend) is None
    assert backend.asked == []
    assert [message.kwargs["turn_id"] for message in unsent(SAMPLE)] == [str(turn.id)]


def test_what_was_said_of_a_changed_reply_is_put_to_no_judge(somebody: Somebody) -> None:
    turn = add_turn(somebody, reply_edited=True)
    backend = Told()

    assert judge(turn, backend) is None
    assert backend.asked == []
    assert [message.kwargs["turn_id"] for message in unsent(SAMPLE)] == [str(turn.id)]


def test_a_judge_that_is_away_is_asked_three_times_and_then_the_turn_is_neutral(somebody: Somebody) -> None:
    turn, other = add_turn(somebody), add_turn(somebody)
    backend = Told(away=True)
    states = []
    for _ in range(services.ATTEMPTS):
        judgement = judge(turn, backend)
        assert judgement is not None
        states.append((judgement.state, judgement.attempts))
    assert states == [("pending", 1), ("pending", 2), ("failed", 3)]
    assert [round((m.available_at - m.created_at).total_seconds()) for m in unsent(JUDGE)] == [5]
    assert judge(turn, backend) is None
    assert len(backend.asked) == 3
    with tenant_scope(somebody.tenant.id):
        said = verdict(turn.id)
    assert said is not None
    assert (said.reward, said.reason) == (0, "the judge failed: nobody there")
    # other turns go on
    settled = judge(other, Told())
    assert settled is not None
    assert settled.state == JudgementState.SETTLED


def test_a_dead_letter_can_be_replayed_by_an_operator(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    for _ in range(services.ATTEMPTS):
        judgement = judge(turn, Told(away=True))
    assert judgement is not None
    with tenant_scope(somebody.tenant.id):
        services.replay(judgement_id=judgement.id, actor="user:1")
        with pytest.raises(Conflict):
            services.replay(judgement_id=judgement.id, actor="user:1")
    again = judge(turn, Told(scores=(1, 1, 1)))
    assert again is not None
    assert (again.id, again.state, again.reward) == (judgement.id, "settled", 1)


def test_a_worker_that_died_while_it_asked_is_followed_by_another_after_its_claim(somebody: Somebody) -> None:
    turn = add_turn(somebody)

    class Dies(Told):
        def judge(self, view: TurnView) -> Opinion:
            raise KeyboardInterrupt

    for attempt in range(1, services.ATTEMPTS + 1):
        with pytest.raises(KeyboardInterrupt):
            judge(turn, Dies())
        assert judge(turn, Told()) is None  # still claimed
        with tenant_scope(somebody.tenant.id):
            assert Judgement.objects.get().attempts == attempt
            Judgement.objects.update(claimed_until=timezone.now())
    assert judge(turn, Told()) is None
    with tenant_scope(somebody.tenant.id):
        assert Judgement.objects.get().state == JudgementState.FAILED


@pytest.mark.parametrize(
    ("scores", "reward", "reason"),
    [
        ((1, 1, -1), 1, ""),
        ((-1, -1, -1), -1, ""),
        ((1, -1), 0, "no majority"),
        ((1, -1, 0), 0, "no majority"),
        ((1, None, None), 1, ""),
        ((1, 1, 0, 0), 0, "no majority"),
        ((None, None, None), 0, "no valid vote"),
        ((), 0, "no valid vote"),
        ((0, 0, 1), 0, ""),
    ],
)
def test_strict_majority(scores: tuple[int | None, ...], reward: int, reason: str) -> None:
    assert strict_majority(tuple(CastVote(score, "", 1.0) for score in scores)) == (reward, reason)


def test_at_most_three_hints_are_accepted() -> None:
    found = select_hints(tuple(FoundHint(f"Do the thing number {n}.") for n in range(5)))
    assert [hint.refused for hint in found] == ["", "", "", "more than 3 hints", "more than 3 hints"]


def test_a_person_outranks_the_judge(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    settle(turn, reward=1, hints=("Keep it as it is, please.",))
    with tenant_scope(somebody.tenant.id):
        for score, correction in ((1, ""), (-1, "Answer in French, please.")):
            Feedback.objects.create(turn=turn, user=somebody.user, score=score, correction=correction)
        said = verdict(turn.id)
    assert said is not None
    assert (said.reward, said.source) == (-1, "human")
    assert said.hints == ("Answer in French, please.", "Keep it as it is, please.")


def test_a_turn_that_is_erased_while_its_judge_thinks_takes_no_other_verdict_with_it(
    somebody: Somebody,
) -> None:
    first, second = add_turn(somebody), add_turn(somebody)

    class Erases(Told):
        def judge(self, view: TurnView) -> Opinion:
            if not self.asked:
                first.session.delete()
            return super().judge(view)

    backend = Erases(name="second")
    with tenant_scope(somebody.tenant.id):
        rules = Rules(votes=3, temperature=0.6, daily_tokens=0)
        identity = identity_of(backend, rules)
        made = judge_all([first.id, second.id], backend=backend, rules=rules, again=identity)
        assert [one.turn_id for one in made] == [second.id]
        assert Judgement.objects.get().state == JudgementState.SETTLED
