"""Admit a request: the pending turn, its parent's next state and the call for a judge, in one transaction."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.accounts.models import EndUser
from apps.adapters.models import AdapterVersion, Policy
from apps.conversations.canonical import Message, chain, clean
from apps.conversations.models import Session, Turn, TurnKind, TurnState
from apps.conversations.prompts import Prompt, build_prompt
from apps.conversations.retries import find_repeated
from apps.conversations.stitching import Place, find_session, place_by_content, place_in_session
from apps.keys.services import Caller
from kernel.outbox import enqueue
from kernel.tenancy import tenant_scope

_JUDGED = (TurnKind.LIVE, TurnKind.ROLLOUT)


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What a client asked, validated, its messages canonical."""

    messages: list[Message]
    body_sha256: str
    tools: list[dict[str, Any]] | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    kind: TurnKind = TurnKind.LIVE
    side: bool = False
    session: str | None = None
    """The session's name, if the client gave one."""
    end_user: str | None = None
    idempotency_key: str | None = None
    is_retry: bool = False
    """Whether the client says that it sends this body again."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A turn that waits for its reply."""

    turn_id: uuid.UUID
    tenant_id: uuid.UUID
    session: str
    """The session as its client names it: its own name, or our id."""
    prompt: Prompt


@dataclass(frozen=True, slots=True)
class Repeated:
    """The turn that this request repeats: still pending, or complete with its reply."""

    turn: Turn
    session: str


def admit_turn(
    *,
    caller: Caller,
    policy: Policy,
    version: AdapterVersion | None,
    request: TurnRequest,
    engine_id: uuid.UUID | None,
) -> Admitted | Repeated:
    """Write the pending turn of a request, or return the turn that it repeats.

    In the same transaction the turn it continues gets its next state (everything the request added after
    the reply; the first request that continues a turn supplies it, a later one is a branch) and the
    outbox row that asks for its judging. A side turn supplies none.
    """
    request = replace(
        request,
        tools=clean(request.tools),
        sampling=clean(request.sampling),
        template_kwargs=clean(request.template_kwargs),
    )
    with tenant_scope(caller.tenant_id):
        try:
            return _admit(caller, policy, version, request, engine_id)
        except IntegrityError:
            # somebody else wrote the same session, end user or idempotency key meanwhile: now it is there
            return _admit(caller, policy, version, request, engine_id)


def find_repeated_turn(*, caller: Caller, request: TurnRequest) -> Repeated | None:
    """Return the turn that a request repeats if that is pending or complete, else None: then admit it.

    Raises IdempotencyKeyReused. `admit_turn` looks again, for what was written in between.
    """
    with tenant_scope(caller.tenant_id):
        turn = _repeated(caller, request)
        if turn is None or turn.state not in (TurnState.PENDING, TurnState.COMPLETE):
            return None
        return Repeated(turn, _name(turn.session))


def _repeated(caller: Caller, request: TurnRequest) -> Turn | None:
    return find_repeated(
        key_id=caller.key_id,
        body_sha256=request.body_sha256,
        idempotency_key=request.idempotency_key,
        is_retry=request.is_retry,
    )


@transaction.atomic
def _admit(
    caller: Caller,
    policy: Policy,
    version: AdapterVersion | None,
    request: TurnRequest,
    engine_id: uuid.UUID | None,
) -> Admitted | Repeated:
    repeated = _repeated(caller, request)
    if repeated is not None and repeated.state in (TurnState.PENDING, TurnState.COMPLETE):
        return Repeated(repeated, _name(repeated.session))
    links = chain(request.messages)
    end_user = _end_user(request.end_user)
    place = _place(caller, policy, request, end_user=end_user, links=links, repeated=repeated)
    prompt = build_prompt(
        parent=place.parent,
        added=place.added,
        extends=place.extends,
        messages=request.messages,
        tools=request.tools,
        template_kwargs=request.template_kwargs,
    )
    session = place.session or Session.objects.create(
        user_id=caller.user_id,
        end_user=end_user,
        policy=policy,
        kind=request.kind,
        external_id=request.session,
        last_turn_at=timezone.now(),
    )
    if place.session is not None:
        Session.objects.filter(id=session.id).update(last_turn_at=timezone.now(), idle_at=None)
    turn = Turn.objects.create(
        session=session,
        parent=place.parent,
        key_id=caller.key_id,
        policy=policy,
        version=version,
        kind=request.kind,
        side=request.side,
        messages=request.messages,
        tools=request.tools,
        sampling=request.sampling,
        template_kwargs=request.template_kwargs,
        prompt_ids=prompt.ids,
        prompt_source=prompt.source,
        prompt_reason=prompt.reason,
        request_hash=links[-1],
        idempotency_key=request.idempotency_key,
        body_sha256=request.body_sha256,
        engine_id=engine_id,
    )
    if place.parent is not None and place.added and not request.side:
        _supply_next_state(place.parent, turn, place.added)
    return Admitted(turn.id, caller.tenant_id, _name(session), prompt)


def _place(
    caller: Caller,
    policy: Policy,
    request: TurnRequest,
    *,
    end_user: EndUser | None,
    links: list[str],
    repeated: Turn | None,
) -> Place:
    if request.session is not None:
        session = find_session(
            caller=caller, policy_id=policy.id, named=request.session, kind=request.kind, end_user=end_user
        )
        if session is None:
            return Place()
        return place_in_session(session=session, messages=request.messages, links=links)
    place = place_by_content(
        caller=caller,
        policy_id=policy.id,
        kind=request.kind,
        end_user=end_user,
        messages=request.messages,
        links=links,
    )
    if place.session is None and repeated is not None:
        # the first try began a session and came to nothing: this one goes on in it
        return Place(session=repeated.session)
    return place


def _supply_next_state(parent: Turn, turn: Turn, added: tuple[Message, ...]) -> None:
    supplied = Turn.objects.filter(id=parent.id, next_turn=None, next_state__isnull=True).update(
        next_state=list(added), next_state_at=timezone.now(), next_turn=turn
    )
    if supplied and parent.state == TurnState.COMPLETE and not parent.side and parent.kind in _JUDGED:
        ask_for_judging(tenant_id=turn.tenant_id, turn_id=parent.id)


def ask_for_judging(*, tenant_id: uuid.UUID, turn_id: uuid.UUID) -> None:
    """Write the outbox row that has a turn judged. Runs in the caller's transaction."""
    enqueue(
        task="workers.judging.judge_turn",
        queue="judge",
        tenant_id=tenant_id,
        kwargs={"turn_id": str(turn_id)},
        dedupe_key=f"judge:{turn_id}",
    )


def _end_user(external_id: str | None) -> EndUser | None:
    if external_id is None:
        return None
    return EndUser.objects.get_or_create(external_id=external_id)[0]


def _name(session: Session) -> str:
    return session.external_id or str(session.id)
