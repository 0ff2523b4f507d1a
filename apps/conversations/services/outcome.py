"""How a turn ends: complete, aborted or failed, once and for good."""

import uuid
from dataclasses import dataclass, field
from typing import Any

from apps.conversations.canonical import Message, canonical_message, clean, link
from apps.conversations.models import Turn, TurnState
from kernel.calls import Call, Plan, array, call, run
from kernel.errors import Conflict, NotFound
from kernel.tenancy import tenant_scope

LOST = "lost"  # what `attune_finish` says of a turn that was only presumed to have failed


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
    """Since the request came; None where nothing says when the first token was there."""
    latency_ms: float | None = None

    def reply(self) -> Message:
        """Return the assistant's message, canonical."""
        content: str | None = self.text
        if self.tool_calls and not self.text:
            content = None
        return canonical_message({"role": "assistant", "content": content, "tool_calls": self.tool_calls})


def complete_turn(*, tenant_id: uuid.UUID, turn_id: uuid.UUID, generation: Generation) -> None:
    """Store a whole reply, also of a turn that was only presumed lost.

    Again with the same tokens it changes nothing.

    Raises Conflict where the turn ended another way meanwhile, or another took its place.
    """
    with tenant_scope(tenant_id):
        run(completing(tenant_id=tenant_id, turn_id=turn_id, generation=generation))


def abort_turn(*, tenant_id: uuid.UUID, turn_id: uuid.UUID, generation: Generation) -> None:
    """Keep what was written before the client hung up. Does nothing to a turn that has ended."""
    with tenant_scope(tenant_id):
        run(aborting(tenant_id=tenant_id, turn_id=turn_id, generation=generation))


def fail_turn(*, tenant_id: uuid.UUID, turn_id: uuid.UUID, error: str, generation: Generation) -> None:
    """Keep what was written before a part failed, and why. Does nothing to a turn that has ended."""
    with tenant_scope(tenant_id):
        run(failing(tenant_id=tenant_id, turn_id=turn_id, error=error, generation=generation))


def moved(*, tenant_id: uuid.UUID, turn_id: uuid.UUID, engine_id: uuid.UUID) -> None:
    """Say that another engine than the one chosen at admission is asked.

    Does nothing to a turn that has ended.
    """
    with tenant_scope(tenant_id):
        Turn.objects.filter(Turn.OPEN, id=turn_id).update(engine_id=engine_id)


def completing(*, tenant_id: uuid.UUID, turn_id: uuid.UUID, generation: Generation) -> Plan[None]:
    """As `complete_turn`, as a plan."""
    before = yield from _finish(
        TurnState.COMPLETE, generation, generation.reply(), tenant_id=tenant_id, turn_id=turn_id
    )
    if before["state"] is None:
        raise NotFound("There is no such turn.")
    if before["state"] != TurnState.PENDING and not (
        before["state"] == TurnState.COMPLETE and before["same"]
    ):
        raise Conflict(f"The turn is already {before['state']}.")


def aborting(*, tenant_id: uuid.UUID, turn_id: uuid.UUID, generation: Generation) -> Plan[None]:
    """As `abort_turn`, as a plan. The client may go on from the part it saw, and a retry may have the key."""
    reply = generation.reply() if generation.output_ids else None
    yield from _finish(TurnState.ABORTED, generation, reply, tenant_id=tenant_id, turn_id=turn_id)


def failing(*, tenant_id: uuid.UUID, turn_id: uuid.UUID, error: str, generation: Generation) -> Plan[None]:
    """As `fail_turn`, as a plan."""
    reply = generation.reply() if generation.output_ids else None
    yield from _finish(TurnState.FAILED, generation, reply, tenant_id=tenant_id, turn_id=turn_id, error=error)


def _finish(
    state: TurnState,
    generation: Generation,
    reply: Message | None,
    *,
    tenant_id: uuid.UUID,
    turn_id: uuid.UUID,
    error: str = "",
) -> Plan[dict[str, Any]]:
    """End a pending turn; return what it was before. One that was given up for lost is found again first."""
    ended = _ended(state, generation, reply, tenant_id=tenant_id, turn_id=turn_id, error=error)
    before = yield ended
    while before["state"] == LOST:
        yield call("attune_found_again", {"tenant": tenant_id, "turn": turn_id})
        before = yield ended
    return before


def _ended(
    state: TurnState,
    generation: Generation,
    reply: Message | None,
    *,
    tenant_id: uuid.UUID,
    turn_id: uuid.UUID,
    error: str,
) -> Call:
    if not error and generation.misaligned:
        error = f"misaligned: {generation.misaligned}"
    continued = reply is not None and state != TurnState.FAILED
    return call(
        "attune_finish",
        {
            "tenant": tenant_id,
            "turn": turn_id,
            "state": state,
            "reply": reply,
            "link": link(reply).decode() if reply is not None and continued else None,
            "output_ids": array(generation.output_ids),
            "output_logprobs": array([] if generation.misaligned else generation.output_logprobs),
            "spans": generation.spans,
            "finish_reason": generation.finish_reason,
            "usage": generation.usage,
            "error": clean(error)[:500],
            "first_token_ms": generation.first_token_ms,
            "latency_ms": generation.latency_ms,
        },
    )
