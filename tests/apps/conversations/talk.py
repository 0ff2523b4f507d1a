"""Hold conversations with the ledger, without any engine."""

from dataclasses import replace
from typing import Any

from apps.conversations.canonical import canonical_message
from apps.conversations.models import Session, Turn
from apps.conversations.services import Admitted, Generation, TurnRequest, admit_turn, complete_turn
from kernel.models import OutboxMessage
from kernel.tenancy import system_scope, tenant_scope
from tests.chat_model import END, ids_of
from tests.tenants import Somebody

Said = dict[str, Any]


def user(text: str) -> Said:
    return {"role": "user", "content": text}


def assistant(text: str) -> Said:
    return {"role": "assistant", "content": text}


def asked(*messages: Said, body: str = "body", **fields: Any) -> TurnRequest:
    return TurnRequest(
        messages=[canonical_message(message) for message in messages],
        body_sha256=body.ljust(64, "0"),
        sampling={"temperature": 0.7},
        **fields,
    )


def admit(somebody: Somebody, *messages: Said, **fields: Any) -> Admitted:
    """Admit a request that repeats nothing."""
    outcome = admit_turn(
        caller=somebody.caller,
        policy_id=somebody.policy.id,
        version_id=None,
        request=asked(*messages, **fields),
        engine_id=None,
    )
    assert isinstance(outcome, Admitted)
    return outcome


def written(text: str, **fields: Any) -> Generation:
    """What an engine wrote: the text byte by byte, then the end of the turn."""
    ids = [*ids_of(text), END]
    plain = Generation(
        text=text,
        output_ids=ids,
        output_logprobs=[-0.5] * len(ids),
        spans=[(0, "base")],
        finish_reason="stop",
        usage={"completion_tokens": len(ids)},
    )
    return replace(plain, **fields)


def say(somebody: Somebody, *messages: Said, reply: str = "ok", **fields: Any) -> Turn:
    """Admit a request and complete it with `reply`; returns the stored turn."""
    admitted = admit(somebody, *messages, **fields)
    complete_turn(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id, generation=written(reply))
    return turn(somebody, admitted)


def turn(somebody: Somebody, admitted: Admitted | Turn) -> Turn:
    """Return the turn as it is stored now."""
    with tenant_scope(somebody.tenant.id):
        key = admitted.turn_id if isinstance(admitted, Admitted) else admitted.id
        return Turn.objects.select_related("session").get(id=key)


def sessions(somebody: Somebody) -> list[Session]:
    with tenant_scope(somebody.tenant.id):
        return list(Session.objects.order_by("created_at"))


def outbox(task: str) -> list[str]:
    """Return the turns for which a task is written, oldest first."""
    with system_scope("look"):
        rows = OutboxMessage.objects.filter(task=task).order_by("id")
        return [row.kwargs["turn_id"] for row in rows]


JUDGE = "workers.judging.judge_turn"
SAMPLE = "workers.samples.make_sample"
