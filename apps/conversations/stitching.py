"""Find the session and the turn that a request continues."""

import contextlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F, Q, QuerySet

from apps.accounts.models import EndUser
from apps.conversations.canonical import Message, same_message
from apps.conversations.models import Session, Turn, TurnState
from apps.keys.services import Caller
from kernel.errors import InvalidInput

_RECENT = 20  # turns of a session that are compared where its client changed what came before


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request belongs. `added` is what it says after the parent's reply."""

    session: Session | None = None
    parent: Turn | None = None
    added: tuple[Message, ...] = ()
    extends: bool = False
    """Whether the request repeats the parent's messages and reply word for word."""


def find_session(
    *, caller: Caller, policy_id: uuid.UUID, named: str, kind: str, end_user: EndUser | None
) -> Session | None:
    """Return the caller's session of this name (or of this id, as our replies give it), if there is one.

    Only the caller's own user is looked at: whatever id another user or tenant chose is another
    session. Raises InvalidInput where the session is of another kind or another end user.
    """
    name = Q(external_id=named)
    with contextlib.suppress(ValueError):
        name |= Q(id=uuid.UUID(named))
    rows = Session.objects.filter(name, user_id=caller.user_id, policy_id=policy_id)
    session = rows.order_by(F("external_id").asc(nulls_last=True)).first()
    if session is None:
        return None
    if session.kind != kind or session.end_user_id != (end_user.id if end_user else None):
        raise InvalidInput(
            "This session belongs to another `user` or another kind of request.",
            field="session_id",
            code="session_mismatch",
        )
    return session


def place_in_session(*, session: Session, messages: Sequence[Message], links: Sequence[str]) -> Place:
    """Return the request's place in the session that it names.

    By the chain of `links`; else, where the client changed what came before, by the last reply that the
    request repeats. A request that repeats no reply of the session starts at its root.
    """
    turns = session.turns.all()
    found = _longest(turns, messages, links)
    if found is not None:
        return found
    last = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=None)
    if last is not None and last + 1 < len(messages):
        for turn in turns.filter(reply__isnull=False).order_by("-created_at", "-id")[:_RECENT]:
            if turn.reply is not None and same_message(turn.reply, messages[last]):
                return Place(session, turn, tuple(messages[last + 1 :]), extends=False)
    return Place(session)


def place_by_content(
    *,
    caller: Caller,
    policy_id: uuid.UUID,
    kind: str,
    end_user: EndUser | None,
    messages: Sequence[Message],
    links: Sequence[str],
) -> Place:
    """Return the place of a request that names no session: after the turn whose messages + reply it repeats.

    Looks at the turns of the same key, policy, kind and end user only. A request that repeats no
    reply is a session of its own, even where another began with the same words.
    """
    turns = Turn.objects.filter(
        key_id=caller.key_id, policy_id=policy_id, kind=kind, session__end_user=end_user
    ).select_related("session")
    return _longest(turns, messages, links) or Place()


def _longest(turns: QuerySet[Turn], messages: Sequence[Message], links: Sequence[str]) -> Place | None:
    """Return the place after the turn that shares most with the request.

    Of turns that share as much, one that nothing continues yet comes first, then the newest.
    """
    ends = [i for i, m in enumerate(messages[:-1]) if m["role"] == "assistant"]
    if not ends:
        return None
    usable = turns.filter(state__in=(TurnState.COMPLETE, TurnState.ABORTED)).order_by(
        F("next_turn_id").asc(nulls_first=True), "-created_at", "-id"
    )
    turn = usable.filter(reply_hash=links[ends[-1]]).first()
    if turn is None and len(ends) > 1:
        earlier = {links[i]: i for i in ends[:-1]}
        known = dict(usable.filter(reply_hash__in=earlier).values_list("reply_hash", "id")[::-1])
        if known:
            turn = turns.get(id=known[max(known, key=earlier.__getitem__)])
    if turn is None:
        return None
    position = links.index(turn.reply_hash)
    return Place(turn.session, turn, tuple(messages[position + 1 :]), extends=True)
