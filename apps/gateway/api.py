"""The smaller routes: models, feedback, health, and everything that is none."""

import uuid
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from prometheus_client import CONTENT_TYPE_LATEST

from apps.conversations.models import Feedback
from apps.conversations.services import give_feedback
from apps.engines.slots import adapter_slots
from apps.gateway import fields
from apps.gateway.admission import read_name
from apps.gateway.asgi import process_of
from apps.gateway.callers import chatting
from apps.gateway.models_served import list_models, no_model
from apps.gateway.parameters import parse_json
from apps.gateway.replies import turn_id_of
from apps.gateway.views import endpoint
from kernel.errors import NotFound

_THUMBS = {"up": 1, "down": -1}
_LONGEST_CORRECTION = 100_000


@endpoint("GET", "HEAD")
async def models(request: HttpRequest) -> HttpResponseBase:
    """List the policies that this key may name, with their live versions."""
    served = await process_of(request).database(_models_for, request.headers.get("Authorization"))
    return _json({"object": "list", "data": served})


@endpoint("GET", "HEAD")
async def model(request: HttpRequest, name: str) -> HttpResponseBase:
    """Return one policy."""
    served = await process_of(request).database(_models_for, request.headers.get("Authorization"))
    for one in served:
        if one["id"] == name:
            return _json(one)
    raise no_model()


@endpoint("POST")
async def feedback(request: HttpRequest) -> HttpResponseBase:
    """Store what a person says of a reply."""
    given = await process_of(request).database(
        _give_feedback,
        authorization=request.headers.get("Authorization"),
        idempotency_key=read_name(request.headers, "Idempotency-Key", longest=255),
        body=request.body,
    )
    return _json(
        {
            "id": str(given.id),
            "object": "feedback",
            "turn_id": str(given.turn_id),
            "score": given.score,
            "correction": given.correction or None,
            "created": int(given.created_at.timestamp()),
        }
    )


@endpoint("GET", "HEAD")
async def healthz(request: HttpRequest) -> HttpResponseBase:
    """Say that this process answers; it asks neither the database nor an engine."""
    return _json({"status": "ok", "running": process_of(request).running})


@endpoint("GET", "HEAD")
async def metrics(request: HttpRequest) -> HttpResponseBase:
    """Give this process's counters in Prometheus' text format; nothing of any tenant is in them."""
    process = process_of(request)
    text = process.counters.text(running=process.running, alone=process.limits.is_alone)
    return HttpResponse(text + adapter_slots().counters.text(), content_type=CONTENT_TYPE_LATEST)


@endpoint()
async def unknown(request: HttpRequest) -> HttpResponseBase:
    """Refuse a path that is not served."""
    del request
    raise NotFound("There is no such route.", code="unknown_url")


def _models_for(authorization: str | None) -> list[dict[str, Any]]:
    return list_models(caller=chatting(authorization))


def _give_feedback(*, authorization: str | None, idempotency_key: str | None, body: bytes) -> Feedback:
    caller = chatting(authorization)
    given = parse_json(body)
    for name in given:
        if name not in ("turn_id", "score", "thumbs", "correction"):
            raise fields.unknown("", name)
    return give_feedback(
        tenant_id=caller.tenant_id,
        user_id=caller.user_id,
        turn_id=_turn_id(given),
        policy_ids=caller.policies,
        score=_score(given),
        correction=_correction(given),
        idempotency_key=idempotency_key,
    )


def _turn_id(given: dict[str, Any]) -> uuid.UUID:
    named = given.get("turn_id")
    if not isinstance(named, str):
        raise fields.wrong("turn_id", "the `X-Turn-Id` or the id of a reply")
    turn_id = turn_id_of(named)
    if turn_id is None:
        raise NotFound("There is no such turn.", field="turn_id")
    return turn_id


def _score(given: dict[str, Any]) -> int | None:
    score = fields.integer(given, "score", -1, 1)
    thumbs = given.get("thumbs")
    if thumbs is None:
        return score
    if score is not None or not isinstance(thumbs, str) or thumbs not in _THUMBS:
        raise fields.wrong("thumbs", "`up` or `down`, and not beside a `score`")
    return _THUMBS[thumbs]


def _correction(given: dict[str, Any]) -> str:
    correction = given.get("correction")
    if correction is None:
        return ""
    if not isinstance(correction, str) or len(correction) > _LONGEST_CORRECTION:
        raise fields.wrong("correction", f"a string of at most {_LONGEST_CORRECTION} characters")
    return correction


def _json(value: object) -> HttpResponse:
    return HttpResponse(orjson.dumps(value), content_type="application/json")
