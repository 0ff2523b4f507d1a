"""From a request's bytes to an admitted turn. Runs in a thread: everything here may read and write rows."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from apps.adapters.placement import engine_for
from apps.conversations.services import Admitted, Repeated, TurnRequest, admit_turn, find_repeated_turn
from apps.engines.chat import chat_format
from apps.engines.models import Engine
from apps.gateway.fields import is_name, wrong
from apps.gateway.messages import check_template_takes
from apps.gateway.models_served import Target, resolve_model
from apps.gateway.parameters import ChatRequest, parse_json, read_chat_request
from apps.keys.models import KeyScope
from apps.keys.services import Caller, authenticate
from kernel.errors import InvalidInput
from kernel.tenancy import tenant_scope


@dataclass(frozen=True, slots=True)
class Admission:
    """A request that may be answered: by asking `engine`, or with the turn that it repeats."""

    caller: Caller
    ask: ChatRequest
    target: Target
    outcome: Admitted | Repeated
    engine: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    is_retry: bool = False


def read_name(headers: Mapping[str, str], name: str, *, longest: int) -> str | None:
    """Return a header that names something, or None where it is absent; raises InvalidInput."""
    value = headers.get(name)
    if value is None:
        return None
    if not is_name(value, longest=longest):
        raise wrong(name, f"1 to {longest} printable ASCII characters")
    return value


def admit(*, headers: Mapping[str, str], body: bytes) -> Admission:
    """Check who asks, what is asked and of which version, and write the pending turn.

    Raises a refusal of `kernel.errors` where the request cannot be answered; then nothing was written.
    """
    caller = authenticate(headers.get("Authorization"))
    caller.require(KeyScope.CHAT)
    ask = read_chat_request(parse_json(body))
    chat = chat_format()
    check_template_takes(ask.messages, ask.tools, knows_tools=chat.template.knows_tools)
    with tenant_scope(caller.tenant_id):
        target = resolve_model(caller=caller, model=ask.model)
        sampling = {
            "temperature": target.policy.temperature,
            "max_tokens": settings.MAX_REPLY_TOKENS,
            **ask.sampling,
        }
        request = TurnRequest(
            messages=ask.messages,
            body_sha256=hashlib.sha256(body).hexdigest(),
            tools=ask.tools,
            sampling=sampling,
            template_kwargs=ask.template_kwargs,
            kind=target.kind,
            side=_side(headers),
            session=_session(headers, ask),
            end_user=ask.end_user,
            idempotency_key=read_name(headers, "Idempotency-Key", longest=255),
            is_retry=_is_retry(headers),
        )
        repeated = find_repeated_turn(caller=caller, request=request)
        if repeated is not None:
            return _replayed(caller, ask, target, request, repeated)
        engine = engine_for(target.version)
        outcome = admit_turn(
            caller=caller,
            policy=target.policy,
            version=target.version,
            request=request,
            engine_id=Engine.objects.filter(url=engine).values_list("id", flat=True).first(),
        )
    if isinstance(outcome, Repeated):
        return _replayed(caller, ask, target, request, outcome)
    return Admission(caller, ask, target, outcome, engine, sampling)


def _replayed(
    caller: Caller, ask: ChatRequest, target: Target, request: TurnRequest, repeated: Repeated
) -> Admission:
    """Return the admission of a repetition: it speaks of the version that answered then."""
    then = Target(target.policy, repeated.turn.version, target.kind)
    return Admission(caller, ask, then, repeated, is_retry=request.is_retry)


def _session(headers: Mapping[str, str], ask: ChatRequest) -> str | None:
    named = read_name(headers, "X-Session-Id", longest=200)
    if named is not None and ask.session is not None and named != ask.session:
        raise InvalidInput(
            "`session_id` and the header `X-Session-Id` name two sessions.", field="session_id"
        )
    return named if named is not None else ask.session


def _side(headers: Mapping[str, str]) -> bool:
    kind = headers.get("X-Turn-Type", "main").strip().lower()
    if kind not in ("main", "side"):
        raise wrong("X-Turn-Type", "`main` or `side`")
    return kind == "side"


def _is_retry(headers: Mapping[str, str]) -> bool:
    count = headers.get("X-Stainless-Retry-Count", "0")
    return count.isascii() and count.isdigit() and int(count[:9]) > 0
