"""How a pending turn ends: complete, aborted or failed, once and for good."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.conversations.canonical import Message, canonical_message, extend_chain
from apps.conversations.models import Turn, TurnState
from kernel.errors import Conflict
from kernel.tenancy import tenant_scope


@dataclass(slots=True)
class Generation:
    """What the engine wrote so far, exactly as it gave it."""

    text: str = ""
    output_ids: list[int] = field(default_factory=list)
    output_logprobs: list[float] = field(default_factory=list)
    """Nats, at the sampled temperature, one per output id."""
    spans: list[tuple[int, str]] = field(default_factory=list)
    """[first token, served name]: which version wrote what."""
    misaligned: str = ""
    """Why the log-probabilities cannot be trusted; the reply is then stored without any."""
    finish_reason: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    first_token_ms: float | None = None
    latency_ms: float | None = None

    def reply(self) -> Message:
        """Return the assistant's message, canonical."""
        content: str | None = self.text
        if self.tool_calls and not self.text:
            content = None
        return canonical_message({"role": "assistant", "content": content, "tool_calls": self.tool_calls})


def complete_turn(*, tenant_id: uuid.UUID, turn_id: uuid.UUID, generation: Generation) -> None:
    """Store a whole reply. Doing it again with the same tokens changes nothing.

    Raises Conflict where the turn ended another way meanwhile.
    """
    reply = generation.reply()
    with tenant_scope(tenant_id), transaction.atomic():
        turn = _locked(turn_id)
        if turn.state == TurnState.COMPLETE and turn.output_ids == generation.output_ids:
            return
        if turn.state != TurnState.PENDING:
            raise Conflict(f"The turn is already {turn.state}.")
        _store(turn, generation, reply)
        turn.state = TurnState.COMPLETE
        turn.reply_hash = extend_chain(turn.request_hash, reply)
        turn.save(update_fields=_STORED)


def abort_turn(*, tenant_id: uuid.UUID, turn_id: uuid.UUID, generation: Generation) -> None:
    """Keep what was written before the client hung up. Does nothing to a turn that has ended."""
    with tenant_scope(tenant_id), transaction.atomic():
        turn = _locked(turn_id)
        if turn.state != TurnState.PENDING:
            return
        reply = generation.reply() if generation.output_ids else None
        _store(turn, generation, reply)
        turn.state = TurnState.ABORTED
        turn.idempotency_key = None  # a retry may have it
        if reply is not None:
            # the client may go on from the part it saw
            turn.reply_hash = extend_chain(turn.request_hash, reply)
        turn.save(update_fields=_STORED)


def fail_turn(*, tenant_id: uuid.UUID, turn_id: uuid.UUID, error: str, generation: Generation) -> None:
    """Keep what was written before a part failed, and why. Does nothing to a turn that has ended."""
    with tenant_scope(tenant_id), transaction.atomic():
        turn = _locked(turn_id)
        if turn.state != TurnState.PENDING:
            return
        _store(turn, generation, generation.reply() if generation.output_ids else None)
        turn.state = TurnState.FAILED
        turn.idempotency_key = None
        turn.error = error.replace("\x00", "\ufffd")[:500]
        turn.save(update_fields=_STORED)


_STORED: Sequence[str] = (
    *("state", "reply", "reply_hash", "output_ids", "output_logprobs", "spans", "finish_reason", "usage"),
    *("error", "first_token_ms", "latency_ms", "completed_at", "idempotency_key"),
)


def _locked(turn_id: uuid.UUID) -> Turn:
    return (
        Turn.objects.select_for_update()
        .only("id", "state", "request_hash", "output_ids", "idempotency_key", "error", "reply_hash")
        .get(id=turn_id)
    )


def _store(turn: Turn, generation: Generation, reply: Message | None) -> None:
    turn.reply = reply
    turn.output_ids = generation.output_ids
    turn.output_logprobs = [] if generation.misaligned else generation.output_logprobs
    if generation.misaligned:
        turn.error = f"misaligned: {generation.misaligned}"[:500]
    turn.spans = generation.spans
    turn.finish_reason = generation.finish_reason
    turn.usage = generation.usage
    turn.first_token_ms = generation.first_token_ms
    turn.latency_ms = generation.latency_ms
    turn.completed_at = timezone.now()
