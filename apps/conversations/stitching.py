"""Find the session and the turn that a request continues.

The database looks for them (`attune_place`); only a named session whose client changed what came before is
compared here, message by message.
"""

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from apps.conversations.canonical import Message, same_message
from kernel.calls import Plan, call
from kernel.errors import InvalidInput

_RECENT = 20  # turns of a session that are compared where its client changed what came before


@dataclass(frozen=True, slots=True)
class Parent:
    """What continuing a turn needs of it."""

    id: uuid.UUID
    ids: list[int]
    """Prompt and reply, as they were."""
    ended: bool
    """Whether the model ended the reply itself."""
    tools: list[dict[str, Any]] | None
    template_kwargs: dict[str, Any]
    told: str = ""
    """What its prompt told of the person."""

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """Return what `attune_parent` says of a turn."""
        return cls(
            id=uuid.UUID(found["id"]),
            ids=found["ids"],
            ended=found["finish_reason"] == "stop",
            tools=found["tools"],
            template_kwargs=found["template_kwargs"],
            told=found["told"] or "",
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request belongs. `added` is what it says after the parent's reply."""

    session: Mapping[str, Any] | None = None
    """id, kind, name, end_user."""
    parent: Parent | None = None
    added: tuple[Message, ...] = ()
    changed: tuple[list[Message], Message] | None = None
    """The parent's messages and reply, where the request does not repeat them word for word."""
    edited: uuid.UUID | None = None
    """The turn whose reply the client changed before it went on; that is what `reaction` is about."""
    reaction: tuple[Message, ...] = ()


def reply_links(messages: Sequence[Message], links: Sequence[str]) -> list[str]:
    """Return the chain's values after each assistant's message that something follows, in their order."""
    return [links[i] for i, message in enumerate(messages[:-1]) if message["role"] == "assistant"]


def session_id_of(named: str | None) -> uuid.UUID | None:
    """Return the id that a session's name may be (our replies give it), or None."""
    with contextlib.suppress(ValueError):
        return uuid.UUID(named) if named is not None else None
    return None


def find_place(
    *,
    tenant_id: uuid.UUID,
    found: Mapping[str, Any],
    named: str | None,
    kind: str,
    end_user: str | None,
    messages: Sequence[Message],
    links: Sequence[str],
) -> Plan[Place]:
    """Return a request's place, given what the database found.

    A request that names its session goes on after the turn whose messages + reply it repeats; else, where the
    client changed what came before, after the last reply that it repeats; else it starts at the session's
    root. One that names none goes on after the turn of the same key, policy, kind and end user that it
    repeats, or is a session of its own, even where another began with the same words. Where the session is
    known and the last reply in the request is one that the client changed, the turn that wrote it is named:
    what was added is about that one.

    Raises InvalidInput where the named session is of another kind or another end user.
    """
    session, parent = found["session"], found["parent"]
    if (
        named is not None
        and session is not None
        and (session["kind"], session["end_user"]) != (kind, end_user)
    ):
        raise InvalidInput(
            "This session belongs to another `user` or another kind of request.",
            field="session_id",
            code="session_mismatch",
        )
    last = max((i for i, message in enumerate(messages) if message["role"] == "assistant"), default=None)
    if last is None or last + 1 == len(messages):
        last = None  # nothing follows the last reply
    position = links.index(parent["reply_hash"]) if parent is not None else None
    edited = None
    if session is not None and last is not None and last > 0 and position != last:
        asked = {"tenant": tenant_id, "session": session["id"], "request": links[last - 1]}
        edited = (yield call("attune_edited", asked))["turn"]
    if parent is not None and position is not None:
        place = Place(session, Parent.of(parent), tuple(messages[position + 1 :]))
    elif named is None or session is None or last is None or edited is not None:
        place = Place(session)
    else:
        place = yield from _after_a_change(tenant_id, session, messages, last)
    if edited is not None and last is not None:
        return replace(place, edited=uuid.UUID(edited), reaction=tuple(messages[last + 1 :]))
    return place


def _after_a_change(
    tenant_id: uuid.UUID, session: Mapping[str, Any], messages: Sequence[Message], last: int
) -> Plan[Place]:
    """Return the place after the newest turn with this last reply, whatever came before it."""
    answer = yield call("attune_recent", {"tenant": tenant_id, "session": session["id"], "most": _RECENT})
    for turn in answer["turns"]:
        if same_message(turn["reply"], messages[last]):
            before = (turn["messages"], turn["reply"])
            return Place(session, Parent.of(turn["turn"]), tuple(messages[last + 1 :]), before)
    return Place(session)
