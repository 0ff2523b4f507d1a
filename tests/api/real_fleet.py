"""Two real engines that the registry knows, what starts gateways for them,
and clients that ask in all ways."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from apps.adapters import publishing
from apps.adapters.models import AdapterVersion
from apps.adapters.services import served_name
from apps.engines.selectors import ranked
from apps.keys.services import set_limit
from embedded.engine import Engine
from kernel.tenancy import tenant_scope
from tests.api.frames import frames
from tests.api.gateway_process import GatewayProcess
from tests.apps.engines.real_engine import version_of
from tests.tenants import Somebody, add_somebody

PAINT: Any = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "green"]}, "matt": {"type": "boolean"}},
    "required": ["colour", "matt"],
    "additionalProperties": False,
}
TOOLS: Any = [{"type": "function", "function": {"name": "paint", "parameters": PAINT}}]
FORCED: Any = {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 1200}
SCHEMA: Any = {"type": "json_schema", "json_schema": {"name": "paint", "schema": PAINT}}
LONG: Any = {
    # cannot end by itself for a long while
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "long", "schema": {"type": "string", "minLength": 1300}},
    },
    "max_tokens": 1300,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """How one request ended."""

    status: int
    turn: str
    session: str
    version: int
    finished: bool
    """Whether its reply came whole."""
    failed: bool
    """Whether its stream ended in an error frame, and without a clean end."""
    text: str
    calls: int
    reason: str = ""
    """Why it ended."""


@dataclass(slots=True)
class Fleet:
    """Real engines, and what starts gateways for them."""

    engines: list[Engine]
    model: Path
    store: Path
    start: Callable[..., GatewayProcess]

    def gateway(self, **env: str) -> GatewayProcess:
        """Start one more gateway process for these engines."""
        keys = {"ENGINE_API_KEY": self.engines[0].api_key, "ENGINE_ADMIN_KEY": self.engines[0].admin_key}
        room = {"CONTEXT_LENGTH": "1800", "MAX_REPLY_TOKENS": "1300"}
        return self.start(model=self.model, **keys, **room, **env)

    def publish(self, somebody: Somebody, parent: AdapterVersion | None, seed: int) -> AdapterVersion:
        """Bring the next version of the policy onto the engines and let it be live."""
        with tenant_scope(somebody.tenant.id):
            version = version_of(somebody.policy, self.store, self.model, parent, seed)
            assert publishing.publish(version.pk).outcome == "live"
        return version


def said(text: str | None = None) -> list[dict[str, Any]]:
    """Return a question that nobody has asked before."""
    return [{"role": "user", "content": text or f"What is {uuid.uuid4().hex[:8]}?"}]


def ask(gateway: GatewayProcess, somebody: Somebody, **more: Any) -> Answer:
    """Send one chat (or, with `input`, one of `/v1/responses`) and read its answer to the end."""
    headers = {**somebody.headers, **more.pop("headers", {})}
    path = "responses" if "input" in more else "chat/completions"
    body = {"model": "default", "temperature": 1} | more
    if path == "chat/completions":
        body = {"max_tokens": 200, "messages": said()} | body
    with httpx.Client(trust_env=False, timeout=240) as client:
        response = client.post(f"{gateway.url}/v1/{path}", json=body, headers=headers)
    return read(response, path=path, stream=bool(more.get("stream")))


def read(response: httpx.Response, *, path: str = "chat/completions", stream: bool) -> Answer:
    """Return how a request ended."""
    if response.status_code != 200:
        return Answer(response.status_code, "", "", -1, finished=False, failed=False, text="", calls=0)
    calls, text, failed, finished, reason = 0, "", False, True, ""
    if path == "responses":
        text = response.text
        finished = not stream or any(
            f"event: response.{how}\n" in text for how in ("completed", "incomplete")
        )
    elif stream:
        events = frames(response.text)
        failed = "error" in events[-1]
        finished = events[-1] == "[DONE]"
        deltas = [
            event["choices"][0]["delta"] for event in events if event != "[DONE]" and event.get("choices")
        ]
        text = "".join(delta.get("content") or "" for delta in deltas)
        calls = sum(len(delta.get("tool_calls") or ()) for delta in deltas)
        reasons = [
            event["choices"][0]["finish_reason"]
            for event in events
            if event != "[DONE]" and event.get("choices")
        ]
        reason = reasons[-1] or ""
    else:
        (choice,) = response.json()["choices"]
        message, reason = choice["message"], choice["finish_reason"]
        text, calls = message["content"] or "", len(message.get("tool_calls") or ())
    told = response.headers
    return Answer(
        200, told["x-turn-id"], told["x-session-id"], int(told["x-adapter-version"]),
        finished=finished, failed=failed, text=text, calls=calls, reason=reason,
    )  # fmt: skip


def is_paint(text: str) -> bool:
    """Return whether a text is what SCHEMA holds a reply to."""
    return set(json.loads(text)) == {"colour", "matt"}


def unlimited(somebody: Somebody) -> None:
    for key in (somebody.key.id, None):
        set_limit(
            tenant_id=somebody.tenant.id, key_id=key, actor="test",
            requests_per_minute=0, tokens_per_minute=0, concurrent=0,
        )  # fmt: skip


def one_for_each(fleet: Fleet) -> tuple[Somebody, Somebody]:
    """Return people of two tenants whose policies prefer different engines."""
    urls = [engine.url for engine in fleet.engines]
    found: dict[str, Somebody] = {}
    for number in range(64):
        somebody = add_somebody(f"tenant-{number}")
        found.setdefault(ranked(urls, served_name(somebody.policy.pk, 1, "0" * 64))[0], somebody)
        if len(found) == 2:
            break
    for somebody in found.values():
        unlimited(somebody)
    return found[urls[0]], found[urls[1]]


def by_id(somebody: Somebody) -> dict[str, Any]:
    return {str(turn.id): turn for turn in somebody.turns()}
