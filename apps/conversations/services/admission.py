"""Admit a request: the pending turn, its parent's next state and the call for a judge, in one transaction."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from apps.conversations.canonical import Message, chain, clean
from apps.conversations.holders import LOST_AFTER_S
from apps.conversations.models import TurnKind
from apps.conversations.prompts import Prompt, build_prompt
from apps.conversations.retries import RETRY_WINDOW, Repeated, read_repeated, taken_over
from apps.conversations.stitching import Place, find_place, reply_links, session_id_of
from apps.conversations.told import Told
from apps.keys.services import Caller
from kernel.calls import Call, Plan, array, call, run
from kernel.errors import Conflict, RateLimited
from kernel.ids import uuid7
from kernel.outbox import enqueue
from kernel.tenancy import tenant_scope

_TRIES = 3
ROLLOUT_RETRY_S = 5.0  # when a rollout that was not admitted should ask again


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
    told: Told | None = None
    """What its prompt says of the person beside these messages."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A turn that waits for its reply."""

    turn_id: uuid.UUID
    tenant_id: uuid.UUID
    session: str
    """The session as its client names it: its own name, or our id."""
    prompt: Prompt


def admit_turn(
    *,
    caller: Caller,
    policy_id: uuid.UUID,
    version_id: uuid.UUID | None,
    request: TurnRequest,
    engine_id: uuid.UUID | None,
) -> Admitted | Repeated:
    """Write the pending turn of a request, or return the turn that it repeats.

    In the same transaction the turn it continues gets its next state (everything the request added after
    the reply; the first request that continues a turn supplies it, a later one is a branch) and the
    outbox row that asks for its judging. A side turn supplies none.
    """
    with tenant_scope(caller.tenant_id):
        return run(
            admitting(
                caller=caller,
                policy_id=policy_id,
                version_id=version_id,
                request=request,
                links=chain(request.messages),
                engine_id=engine_id,
            )
        )


def admitting(
    *,
    caller: Caller,
    policy_id: uuid.UUID,
    version_id: uuid.UUID | None,
    request: TurnRequest,
    links: Sequence[str],
    engine_id: uuid.UUID | None,
    found: Mapping[str, Any] | None = None,
    gate: Mapping[str, Any] | None = None,
) -> Plan[Admitted | Repeated]:
    """As `admit_turn`, as a plan. `found`: what the database said of the request's place already.

    `gate`: what `attune_admit_rollout` must know; with it a rollout that begins is only admitted while its
    policy has room for it, and RateLimited (`rollout_capacity`) is raised where it has none.
    """
    request = replace(
        request,
        tools=clean(request.tools),
        sampling=clean(request.sampling),
        template_kwargs=clean(request.template_kwargs),
    )
    for _ in range(_TRIES):
        if found is None:
            found = yield _place_call(caller, policy_id, request, links)
        repeated = read_repeated(
            found=found["repeated"],
            tenant_id=caller.tenant_id,
            body_sha256=request.body_sha256,
            idempotency_key=request.idempotency_key,
        )
        if repeated is not None:
            return repeated
        place = yield from find_place(
            tenant_id=caller.tenant_id,
            found=found,
            named=request.session,
            kind=request.kind,
            end_user=request.end_user,
            messages=request.messages,
            links=links,
        )
        prompt = build_prompt(
            place=place,
            messages=request.messages,
            tools=request.tools,
            template_kwargs=request.template_kwargs,
            told=request.told,
        )
        turn_id = uuid7()
        session_id = place.session["id"] if place.session is not None else str(uuid7())
        answer = yield call(
            "attune_admit" if gate is None else "attune_admit_rollout",
            {
                **({} if gate is None else {"gate": gate}),
                **_row(caller, request, place, prompt),
                "turn": turn_id,
                "session": session_id,
                "policy": policy_id,
                "version": version_id,
                "request_hash": links[-1],
                "engine": engine_id,
                "instead_of": taken_over(found["repeated"]),
            },
        )
        if answer.get("full"):
            raise RateLimited(
                "Training is behind: what this policy has under way and waiting is enough for now. "
                f"Ask again in {ROLLOUT_RETRY_S:g} seconds.",
                code="rollout_capacity",
                retry_after_s=ROLLOUT_RETRY_S,
            )
        if not answer["conflict"]:
            name = place.session["name"] if place.session is not None else request.session or session_id
            return Admitted(turn_id, caller.tenant_id, name, prompt)
        found = None  # somebody else wrote the same session or idempotency key meanwhile, or ended that turn: now it is there
    raise Conflict("The same request is being admitted elsewhere.", retry_after_s=1.0)


def place_asked(request: TurnRequest, links: Sequence[str]) -> dict[str, Any]:
    """Return what `attune_place` must know of a request, besides who asks and of which policy."""
    return {
        "kind": request.kind,
        "session": request.session,
        "session_id": session_id_of(request.session),
        "end_user": request.end_user,
        "links": reply_links(request.messages, links),
        "body_sha256": request.body_sha256,
        "idempotency_key": request.idempotency_key,
        "is_retry": request.is_retry,
        "retry_window_s": RETRY_WINDOW.total_seconds(),
        "lost_after_s": LOST_AFTER_S,
    }


def _place_call(caller: Caller, policy_id: uuid.UUID, request: TurnRequest, links: Sequence[str]) -> Call:
    who = {"tenant": caller.tenant_id, "user": caller.user_id, "key": caller.key_id, "policy": policy_id}
    return call("attune_place", {**place_asked(request, links), **who})


def _row(caller: Caller, request: TurnRequest, place: Place, prompt: Prompt) -> dict[str, Any]:
    return {
        "tenant": caller.tenant_id,
        "user": caller.user_id,
        "key": caller.key_id,
        "begins": place.session is None,
        "external_id": request.session,
        "end_user": request.end_user,
        "new_end_user": uuid7() if request.end_user is not None else None,
        "parent": place.parent.id if place.parent is not None else None,
        "answers": place.edited or (place.parent.id if place.parent is not None else None),
        "edited": place.edited is not None,
        "added": place.reaction if place.edited is not None else place.added,
        "kind": request.kind,
        "side": request.side,
        "messages": request.messages,
        "tools": request.tools,
        "sampling": request.sampling,
        "template_kwargs": request.template_kwargs,
        "prompt_ids": array(prompt.ids),
        "prompt_source": prompt.source,
        "prompt_reason": prompt.reason,
        "memory": prompt.told.to_json() if prompt.told is not None else None,
        "idempotency_key": request.idempotency_key,
        "body_sha256": request.body_sha256,
    }


def ask_for_judging(*, tenant_id: uuid.UUID, turn_id: uuid.UUID) -> None:
    """Write the outbox row that has a turn judged. Runs in the caller's transaction."""
    enqueue(
        task="workers.judging.judge_turn",
        queue="judge",
        tenant_id=tenant_id,
        kwargs={"turn_id": str(turn_id)},
        dedupe_key=f"judge:{turn_id}",
    )
