"""What a person says of a turn by hand."""

import pytest

from apps.conversations.models import Feedback
from apps.conversations.services import Generation, give_feedback
from kernel.errors import Conflict, InvalidInput, NotFound
from kernel.models import OutboxMessage
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.conversations.talk import SAMPLE, admit, outbox, say, user
from tests.tenants import Somebody, add_somebody

pytestmark = pytest.mark.django_db


def give(somebody: Somebody, turn_id: object, **fields: object) -> Feedback:
    given = {"score": 1, "correction": "", **fields}
    return give_feedback(tenant_id=somebody.tenant.id, user_id=somebody.user.id, turn_id=turn_id, **given)


def count(somebody: Somebody) -> int:
    with tenant_scope(somebody.tenant.id):
        return Feedback.objects.count()


def test_feedback_is_stored_and_asks_for_a_sample(somebody: Somebody) -> None:
    turn = say(somebody, user("hi"))

    feedback = give(somebody, turn.id, score=-1, correction="Shorter, please.")

    assert (feedback.turn_id, feedback.user_id) == (turn.id, somebody.user.id)
    assert (feedback.score, feedback.correction) == (-1, "Shorter, please.")
    assert outbox(SAMPLE) == [str(turn.id)]
    with system_scope("look"):
        row = OutboxMessage.objects.get()
    assert (row.queue, row.dedupe_key) == ("judge", f"sample:{turn.id}")


def test_the_same_words_twice_are_one_row(somebody: Somebody) -> None:
    turn = say(somebody, user("hi"))

    first, again = give(somebody, turn.id), give(somebody, turn.id)
    changed = give(somebody, turn.id, score=-1)
    back = give(somebody, turn.id)

    assert first.id == again.id
    assert len({first.id, changed.id, back.id}) == 3
    assert count(somebody) == 3
    assert outbox(SAMPLE) == [str(turn.id)]


def test_an_idempotency_key_stands_for_one_feedback(somebody: Somebody) -> None:
    turn = say(somebody, user("hi"))
    first = give(somebody, turn.id, idempotency_key="f1")
    give(somebody, turn.id, score=-1)

    assert give(somebody, turn.id, idempotency_key="f1").id == first.id
    with pytest.raises(InvalidInput):
        give(somebody, turn.id, score=-1, idempotency_key="f1")
    assert count(somebody) == 2


@pytest.mark.parametrize("relation", ["colleague", "stranger"])
def test_a_turn_of_somebody_else_is_not_found_and_nothing_changes(somebody: Somebody, relation: str) -> None:
    turn = say(somebody, user("hi"))
    other = add_somebody(tenant=somebody.tenant) if relation == "colleague" else add_somebody("other")

    with pytest.raises(NotFound):
        give(other, turn.id)

    assert count(somebody) == 0
    assert outbox(SAMPLE) == []


def test_a_turn_without_a_whole_reply_takes_none(somebody: Somebody) -> None:
    admitted = admit(somebody, user("hi"))
    assert Generation().reply() == {"role": "assistant", "content": ""}

    with pytest.raises(Conflict):
        give(somebody, admitted.turn_id)
    assert count(somebody) == 0


def test_saying_nothing_is_refused(somebody: Somebody) -> None:
    turn = say(somebody, user("hi"))

    with pytest.raises(InvalidInput) as refusal:
        give(somebody, turn.id, score=None)
    assert refusal.value.field == "score"
