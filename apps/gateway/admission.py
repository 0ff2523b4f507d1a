"""From a request's bytes to an admitted turn:
two calls to the ledger, one that looks up and one that writes."""

import hashlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings

from apps.accounts import pausing
from apps.accounts.names import is_name
from apps.adapters.models import AdapterVersion
from apps.adapters.placement import engine_for
from apps.conversations.canonical import chain
from apps.conversations.models import Turn, TurnKind
from apps.conversations.services import Admitted, Repeated, TurnRequest, admitting, place_asked
from apps.engines.chat import chat_format
from apps.engines.models import Engine
from apps.engines.selectors import steady_choice
from apps.engines.slots import adapter_slots
from apps.gateway.fields import wrong
from apps.gateway.messages import check_template_takes
from apps.gateway.models_served import ModelName, Target, resolve_model
from apps.gateway.parameters import ChatRequest, parse_json
from apps.gateway.process import Process, Slot
from apps.keys.header import Credential, parse_authorization
from apps.keys.limits import Permit, Rules
from apps.keys.models import KeyScope
from apps.keys.services import Caller, FoundKey, note_use, recognise
from apps.learning.intake import rollout_gate
from apps.memory.prompt import told
from kernel.calls import Plan, call
from kernel.errors import AttuneError, InvalidInput
from kernel.tenancy import tenant_scope

ReadBody = Callable[[dict[str, Any]], ChatRequest]

# above this a body is read and tokenised in a thread: the event loop has other requests
_HEAVY_BYTES = 50_000
_BYTES_PER_TOKEN = 4  # for what the limits hold back until the reply says how many it was


@dataclass(frozen=True, slots=True)
class Admission:
    """A request that may be answered: by asking `engine`, or with the turn that it repeats."""

    caller: Caller
    ask: ChatRequest
    target: Target
    outcome: Admitted | Repeated
    permit: Permit
    engine: str = ""
    engines: Mapping[str, uuid.UUID] = field(default_factory=dict)
    """Every engine that may be asked for the version, and its id."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    is_retry: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A valid request before anybody looked at who asks."""

    ask: ChatRequest
    model: ModelName
    turn: TurnRequest
    links: list[str]
    recalls: bool
    """Whether the prompt is told of the person."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the look-up says, once the key is known to be good."""

    caller: Caller
    target: Target
    place: Mapping[str, Any]
    engines: list[Mapping[str, Any]]
    rules: Rules
    touch: bool
    memory: Mapping[str, Any] | None = None
    """What the prompt may be told of the person; None where the request wants none."""


def read_name(headers: Mapping[str, str], name: str, *, longest: int) -> str | None:
    """Return a header that names something, or None where it is absent; raises InvalidInput."""
    value = headers.get(name)
    if value is None:
        return None
    if not is_name(value, longest=longest):
        raise wrong(name, f"1 to {longest} printable ASCII characters")
    return value


async def admit(
    *, process: Process, slot: Slot, read: ReadBody, headers: Mapping[str, str], body: bytes
) -> Admission:
    """Check who asks, what is asked and of which version, and write the pending turn.

    `read` takes the body's JSON object and returns the request in it.

    Raises a refusal of `kernel.errors` where the request cannot be answered; then nothing was written.
    """
    heavy = len(body) > _HEAVY_BYTES
    credential = parse_authorization(headers.get("Authorization"))
    question, found = await process.ledger.run(_looking_up(credential, read, headers, body), heavy=heavy)
    if found.touch:
        process.later(
            process.database(note_use, tenant_id=found.caller.tenant_id, key_id=found.caller.key_id)
        )
    ask, turn = question.ask, question.turn
    if turn.kind == TurnKind.LIVE and KeyScope.ROLLOUT in found.caller.scopes:
        turn = replace(turn, kind=TurnKind.ROLLOUT)
    sampling = {
        "temperature": found.target.temperature,
        "max_tokens": settings.MAX_REPLY_TOKENS,
        **ask.sampling,
    }
    permit = slot.permit
    if permit is None:
        permit = await process.limits.take(
            tenant_id=found.caller.tenant_id,
            key_id=found.caller.key_id,
            rules=found.rules,
            tokens=len(body) // _BYTES_PER_TOKEN + min(sampling["max_tokens"], settings.CONTEXT_LENGTH),
        )
        slot.holds(process.limits, permit)
    engine, engine_id, engines = await _engine(process, found)
    outcome = await process.ledger.run(
        admitting(
            caller=found.caller,
            policy_id=found.target.policy_id,
            version_id=found.target.version_id,
            request=replace(turn, sampling=sampling, told=told(found.memory)),
            links=question.links,
            engine_id=engine_id,
            found=found.place if turn.kind == question.turn.kind else None,
            gate=rollout_gate() if turn.kind == TurnKind.ROLLOUT else None,
        ),
        heavy=heavy,
    )
    if isinstance(outcome, Admitted):
        process.counters.prompt(source=outcome.prompt.source, reason=outcome.prompt.reason)
    return Admission(
        found.caller, ask, found.target, outcome, permit, engine, engines, sampling, turn.is_retry
    )


def stored_reply(*, tenant_id: uuid.UUID, turn_id: uuid.UUID) -> Turn | None:
    """Return a turn with the version that answered it; None where it is deleted by now.

    Reads rows: runs in a thread.
    """
    with tenant_scope(tenant_id):
        return Turn.objects.select_related("version").filter(id=turn_id).first()


def _looking_up(
    credential: Credential, read: ReadBody, headers: Mapping[str, str], body: bytes
) -> Plan[tuple[Question, Found]]:
    """Read the request and look up everything it names at once.

    Who may not ask learns nothing of what is wrong.
    """
    try:
        question = _read(read, headers, body)
    except AttuneError as error:
        _known((yield call("attune_look_up", {"public_id": credential.public_id})), credential)
        raise error from None
    asked = {
        "public_id": credential.public_id,
        "policy_name": question.model.policy,
        "number": question.model.number,
        "recall": question.recalls,
        **place_asked(question.turn, question.links),
    }
    answer = yield call("attune_recall", asked)
    caller, touch = _known(answer, credential)
    target = resolve_model(caller=caller, model=question.model, found=answer)
    return question, Found(
        caller,
        target,
        answer["place"],
        answer["engines"],
        Rules.of(answer["limits"] or {}),
        touch,
        answer.get("memory"),
    )


def _known(answer: Mapping[str, Any], credential: Credential) -> tuple[Caller, bool]:
    key = FoundKey.of(answer["key"]) if answer else None
    caller = recognise(credential, key)
    pausing.refuse(answer["paused"])
    caller.require(KeyScope.CHAT)
    return caller, key is not None and key.unseen


def _read(read: ReadBody, headers: Mapping[str, str], body: bytes) -> Question:
    ask = read(parse_json(body))
    check_template_takes(ask.messages, ask.tools, knows_tools=chat_format().template.knows_tools)
    model = ModelName.parse(ask.model)
    turn = TurnRequest(
        messages=ask.messages,
        body_sha256=hashlib.sha256(body).hexdigest(),
        tools=ask.tools,
        template_kwargs=ask.template_kwargs,
        kind=model.kind,
        side=_side(headers),
        session=_session(headers, ask),
        end_user=ask.end_user,
        idempotency_key=read_name(headers, "Idempotency-Key", longest=255),
        is_retry=_is_retry(headers),
    )
    return Question(ask, model, turn, chain(ask.messages), _recalls(headers, turn))


async def _engine(process: Process, found: Found) -> tuple[str, uuid.UUID | None, Mapping[str, uuid.UUID]]:
    """Return the engine to ask, its id, and all that could be,
    as the database had it when the key was read."""
    adapter = found.target.adapter
    usable = {one["url"]: uuid.UUID(one["id"]) for one in found.engines if adapter is None or one["proven"]}
    if usable:
        url = steady_choice(list(usable), adapter, adapter_slots().running)
        return url, usable[url], usable
    # nowhere now: a version asked for by number may be loaded for it, which takes a while
    url, engine_id = await process.database(
        _bring_back, tenant_id=found.caller.tenant_id, version_id=found.target.version_id
    )
    return url, engine_id, {}


def _bring_back(*, tenant_id: uuid.UUID, version_id: uuid.UUID | None) -> tuple[str, uuid.UUID | None]:
    with tenant_scope(tenant_id):
        url = engine_for(AdapterVersion.objects.get(id=version_id) if version_id is not None else None)
        return url, Engine.objects.filter(url=url).values_list("id", flat=True).first()


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


def _recalls(headers: Mapping[str, str], turn: TurnRequest) -> bool:
    """Return whether the prompt is told of the person:
    a version that is measured answers without, unless asked to."""
    wanted = headers.get("X-Memory", "on" if turn.kind == TurnKind.LIVE else "off").strip().lower()
    if wanted not in ("on", "off"):
        raise wrong("X-Memory", "`on` or `off`")
    return wanted == "on"


def _is_retry(headers: Mapping[str, str]) -> bool:
    count = headers.get("X-Stainless-Retry-Count", "0")
    return count.isascii() and count.isdigit() and int(count[:9]) > 0
