"""What a person says of a turn by hand."""

import uuid
from collections.abc import Collection

from django.db import transaction

from apps.conversations.canonical import clean
from apps.conversations.models import Feedback, Turn, TurnState
from kernel.errors import Conflict, InvalidInput, NotFound
from kernel.outbox import enqueue
from kernel.tenancy import tenant_scope


def give_feedback(
    *,
    tenant_id: uuid.UUID,
    user_id: uuid.UUID,
    turn_id: uuid.UUID,
    score: int | None,
    correction: str = "",
    idempotency_key: str | None = None,
    policy_ids: Collection[uuid.UUID] | None = None,
) -> Feedback:
    """Store a score (-1, 0 or 1) or a correction of a turn of this user's; the newest one counts.

    With `policy_ids`, turns of other policies do not exist.

    The same again (by key, or the same words twice in a row) returns the row that is there. The
    outbox row that makes a sample of it is part of the transaction.
    """
    correction = clean(correction)
    if score is None and not correction:
        raise InvalidInput("Give a `score`, a `correction` or both.", field="score")
    with tenant_scope(tenant_id), transaction.atomic():
        turns = (
            Turn.objects.select_for_update(of=("self",), no_key=True)
            .only("id", "tenant_id", "state")
            .filter(id=turn_id, session__user_id=user_id)
        )
        turn = (turns if policy_ids is None else turns.filter(policy_id__in=policy_ids)).first()
        if turn is None:
            raise NotFound("There is no such turn.", field="turn_id")
        if turn.state != TurnState.COMPLETE:
            raise Conflict(f"The turn is {turn.state}: only a whole reply takes feedback.", field="turn_id")
        given = Feedback.objects.filter(turn=turn, user_id=user_id).order_by("-created_at", "-id")
        if idempotency_key is not None:
            before = given.filter(idempotency_key=idempotency_key).first()
            if before is not None:
                if (before.score, before.correction) != (score, correction):
                    raise InvalidInput(
                        "This idempotency key was used with other feedback.", field="Idempotency-Key"
                    )
                return before
        last = given.first()
        if last is not None and (last.score, last.correction) == (score, correction):
            return last
        feedback = Feedback.objects.create(
            turn=turn,
            user_id=user_id,
            score=score,
            correction=correction,
            idempotency_key=idempotency_key,
        )
        enqueue(
            task="workers.samples.make_sample",
            queue="judge",
            tenant_id=tenant_id,
            kwargs={"turn_id": str(turn.id)},
            dedupe_key=f"sample:{turn.id}",
        )
    return feedback
