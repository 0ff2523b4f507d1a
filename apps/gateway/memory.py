"""`/v1/memory`: what a person asked of a policy, to see, add, change and delete."""

import uuid
from collections.abc import Mapping
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from apps.accounts.names import LONGEST_END_USER, is_name
from apps.adapters.models import Policy
from apps.gateway import fields
from apps.gateway.asgi import process_of, query_of
from apps.gateway.callers import chatting
from apps.gateway.models_served import no_model
from apps.gateway.parameters import parse_json
from apps.gateway.views import endpoint
from apps.keys.services import Caller
from apps.memory import services
from apps.memory.models import Preference, PreferenceState
from apps.memory.people import Person, end_user_of
from apps.memory.selectors import preferences_of, tokens_saved, with_words
from kernel.errors import InvalidInput, NotFound
from kernel.tenancy import tenant_scope

_MOST_LISTED = 100


@endpoint("GET", "HEAD", "POST")
async def memory(request: HttpRequest) -> HttpResponseBase:
    """List what a person asked of a policy, or add to it."""
    process, header = process_of(request), request.headers.get("Authorization")
    if request.method == "POST":
        return _json(await process.database(_add, header, request.body))
    return _json(await process.database(_list, header, query_of(request)))


@endpoint("GET", "HEAD", "POST", "PATCH", "DELETE")
async def entry(request: HttpRequest, name: str) -> HttpResponseBase:
    """Show, change, pin or delete one preference."""
    process, header = process_of(request), request.headers.get("Authorization")
    if request.method in ("POST", "PATCH"):
        return _json(await process.database(_edit, header, name, request.body))
    if request.method == "DELETE":
        return _json(await process.database(_delete, header, name))
    return _json(await process.database(_show, header, name))


def _list(authorization: str | None, query: Mapping[str, str]) -> dict[str, Any]:
    caller = chatting(authorization)
    _only(query, "model", "user", "state", "limit", "after")
    limit = _limit(query.get("limit"))
    state = query.get("state")
    if state is not None and state not in ("active", "learned", "superseded"):
        raise fields.wrong("state", "`active`, `learned` or `superseded`")
    after = _id(query["after"], "after") if "after" in query else None
    with tenant_scope(caller.tenant_id):
        policy = _policy(caller, query.get("model", "default"))
        person = _person(caller, policy, fields.text(query, "user", longest=LONGEST_END_USER))
        if person is None:
            return {"object": "list", "data": [], "has_more": False}
        rows = preferences_of(person).select_related("end_user", "policy")
        if state is not None:
            rows = rows.filter(state=state)
        if after is not None:
            rows = rows.filter(id__lt=after)
        found = list(rows[: limit + 1])
        return {
            "object": "list",
            "data": [_object(row) for row in found[:limit]],
            "has_more": len(found) > limit,
        }


def _add(authorization: str | None, body: bytes) -> dict[str, Any]:
    caller = chatting(authorization)
    given = parse_json(body)
    _only(given, "model", "user", "text", "pinned")
    text = given.get("text")
    if not isinstance(text, str):
        raise fields.wrong(
            "text", "a string", code="missing_required_parameter" if text is None else "invalid_value"
        )
    pinned = fields.flag(given, "pinned") or False
    end_user = fields.text(given, "user", longest=LONGEST_END_USER)
    name = given.get("model", "default")
    with tenant_scope(caller.tenant_id):
        row = services.add_preference(
            policy_id=_policy(caller, name).id,
            user_id=caller.user_id,
            end_user=end_user,
            text=text,
            pinned=pinned,
            actor=caller.actor,
        )
        return _object(_found(caller, row.id))


def _show(authorization: str | None, name: str) -> dict[str, Any]:
    caller = chatting(authorization)
    with tenant_scope(caller.tenant_id):
        return _object(_found(caller, _id(name, "id")))


def _edit(authorization: str | None, name: str, body: bytes) -> dict[str, Any]:
    caller = chatting(authorization)
    given = parse_json(body)
    _only(given, "text", "pinned")
    text = given.get("text")
    if text is not None and not isinstance(text, str):
        raise fields.wrong("text", "a string")
    pinned = fields.flag(given, "pinned")
    if text is None and pinned is None:
        raise InvalidInput("Give a `text`, `pinned` or both.", field="text")
    with tenant_scope(caller.tenant_id):
        row = services.edit_preference(
            preference_id=_within_reach(caller, name),
            user_id=caller.user_id,
            text=text,
            pinned=pinned,
            actor=caller.actor,
        )
        return _object(_found(caller, row.id))


def _delete(authorization: str | None, name: str) -> dict[str, Any]:
    caller = chatting(authorization)
    with tenant_scope(caller.tenant_id):
        services.delete_preference(
            preference_id=_within_reach(caller, name), user_id=caller.user_id, actor=caller.actor
        )
    return {"id": name, "object": "memory.deleted", "deleted": True}


def _found(caller: Caller, preference_id: uuid.UUID) -> Any:
    rows = Preference.objects.filter(id=preference_id, user_id=caller.user_id).exclude(
        state=PreferenceState.DELETED
    )
    row = with_words(rows).exclude(words="").select_related("end_user", "policy").first()
    if row is None or not caller.may_name(row.policy_id):
        raise NotFound("There is no such preference.", field="id")
    return row


def _within_reach(caller: Caller, name: str) -> uuid.UUID:
    """Return the id of a preference, unless it is of a policy that the key may not name."""
    preference_id = _id(name, "id")
    if caller.policies is not None:
        of_policy = Preference.objects.filter(id=preference_id).values_list("policy_id", flat=True).first()
        if of_policy not in caller.policies:
            raise NotFound("There is no such preference.", field="id")
    return preference_id


def _object(row: Any) -> dict[str, Any]:
    return {
        "id": str(row.id),
        "object": "memory",
        "created": int(row.created_at.timestamp()),
        "model": row.policy.name,
        "user": row.end_user.external_id if row.end_user is not None else None,
        "text": row.words,
        "state": row.state,
        "reason": row.reason or None,
        "source": row.source,
        "pinned": row.pinned,
        "general": row.general,
        "evidence": row.evidence_count,
        "first_seen": int(row.first_seen.timestamp()),
        "last_seen": int(row.last_seen.timestamp()),
        "revision": row.revision,
        "tokens_saved": tokens_saved(row),
        "superseded_by": str(row.superseded_by_id) if row.superseded_by_id else None,
    }


def _policy(caller: Caller, name: Any) -> Policy:
    known = isinstance(name, str) and is_name(name, longest=60)
    policy = Policy.objects.filter(name=name).first() if known else None
    if policy is None or not caller.may_name(policy.pk):
        raise no_model()
    return policy


def _person(caller: Caller, policy: Policy, end_user: str | None) -> Person | None:
    """Return whom the request speaks of; None where the end user it names has never been named before."""
    if end_user is None:
        return Person(policy.id, caller.user_id)
    known = end_user_of(end_user)
    return Person(policy.id, caller.user_id, known.id) if known is not None else None


def _only(given: Mapping[str, Any], *known: str) -> None:
    for name in given:
        if name not in known:
            shown = name.encode("ascii", "replace").decode()[:100]
            raise InvalidInput(f"Unknown parameter: `{shown}`.", field=shown, code="unknown_parameter")


def _limit(text: str | None) -> int:
    if text is None:
        return 20
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= _MOST_LISTED):
        raise fields.wrong("limit", f"a whole number from 1 to {_MOST_LISTED}")
    return int(text)


def _id(text: str, field: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise NotFound("There is no such preference.", field=field) from None


def _json(value: object) -> HttpResponse:
    return HttpResponse(orjson.dumps(value), content_type="application/json")
