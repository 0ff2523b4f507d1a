"""Policies that learn by a simple rule behind `/v1`, and an operator for them:
every figure can be counted by hand.

Each complaint is a lesson; every `per_version` lessons make the next version; from version `learned_at` on a
policy answers in one short sentence. With memory in the prompt it does so after the first complaint, with the
hint at once.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from apps.evaluation.chat import Chat, RequestLog
from apps.evaluation.personalization.journal import Journal, Line, Past
from apps.evaluation.personalization.methods import METHODS, Method, find_methods
from apps.evaluation.personalization.plan import Plan, RunKey, Terms
from apps.evaluation.personalization.run import FROZEN, Subject
from apps.evaluation.users import load_user

USER = load_user("one-short-sentence")
LONG = "{topic} is a big matter. It has many sides. One could go on for a long time."
SHORT = "{topic} is a matter of a few words."
QUICK = Terms(cap=9, replies=3, idle_s=0.0, patience_s=0.0, idle_minutes=0.0, settles_s=0.0)


def plan_of(*methods: str, seeds: Sequence[int] = (1,), terms: Terms = QUICK) -> Plan:
    """Return a plan with the one user."""
    return Plan(tuple(find_methods(methods)), (USER.name,), tuple(seeds), terms, "fake")


@dataclass(slots=True)
class Mind:
    """What one tenant's policy has learned."""

    method: Method
    lessons: int = 0
    resting: bool = False
    requests: list[Mapping[str, Any]] = field(default_factory=list)


class FakeWorld:
    """Serves until the block ends. It is a `Platform` itself."""

    def __init__(self, *, per_version: int = 7, learned_at: int = 2, late: int = 0) -> None:
        self.per_version = per_version
        self.late = late
        """Versions that were under way when a policy was put to rest, and go live then."""
        self.learned_at = learned_at
        self.minds: dict[str, Mind] = {}
        self.fail: set[int] = set()
        """Numbers of chats (from 0) that get a 503."""
        self.hang_at = -1
        """The chat that is never answered."""
        self.hung = asyncio.Event()
        self.closed: list[str] = []
        self._chats = 0

    async def __aenter__(self) -> "FakeWorld":
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/v1/memory", self._memory)
        app.router.add_post("/v1/chat/completions", self._chat)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._runner.cleanup()

    async def open(self, *, method: Method, tenant: str) -> Subject | None:
        if tenant and tenant not in self.minds:
            return None
        slug = tenant or f"{method.name}-{len(self.minds)}"
        self.minds.setdefault(slug, Mind(method)).resting = False
        user, examiner = (Chat(base_url=self.base_url, api_key=slug, log=RequestLog()) for _ in range(2))
        return Subject(tenant=slug, policy="default", user=user, examiner=examiner)

    async def rest(self, subject: Subject) -> None:
        mind = self.minds[subject.tenant]
        if not mind.resting:
            mind.lessons += self.late * self.per_version
        mind.resting = True

    async def account(self, subject: Subject) -> Mapping[str, Any]:
        return {}

    async def close(self, subject: Subject) -> None:
        await subject.user.close()
        await subject.examiner.close()
        self.closed.append(subject.tenant)

    def live(self, mind: Mind) -> int:
        return mind.lessons // self.per_version if mind.method.trains else 0

    def _mind(self, request: web.Request) -> Mind:
        slug = request.headers["Authorization"].removeprefix("Bearer ")
        # a benchmark in another process makes its tenants by naming them
        return self.minds.setdefault(slug, Mind(METHODS.get(slug.removesuffix("-child"), FROZEN)))

    async def _models(self, request: web.Request) -> web.Response:
        version = self.live(self._mind(request))
        model = {"id": "default", "object": "model", "created": 0, "owned_by": "fake", "version": version}
        return web.json_response({"object": "list", "data": [model]})

    async def _memory(self, request: web.Request) -> web.Response:
        state = "learned" if self.live(self._mind(request)) >= self.learned_at else "active"
        return web.json_response({"object": "list", "data": [{"state": state}], "has_more": False})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        mind, body = self._mind(request), orjson.loads(await request.read())
        number, self._chats = self._chats, self._chats + 1
        if number == self.hang_at:
            self.hung.set()
            await asyncio.sleep(3600)
        if number in self.fail:
            return web.json_response({"error": {"message": "no engine", "type": "server_error"}}, status=503)
        mind.requests.append(body)
        _, _, named = body["model"].partition("@")
        said = body["messages"][-1]["content"]
        if not named and len(body["messages"]) > 1 and said not in USER.thanks and not mind.resting:
            mind.lessons += 1
        version = int(named) if named else self.live(mind)
        told = mind.method.memory and mind.lessons > 0
        told = told and request.headers.get("X-Memory", "off" if named else "on") == "on"
        good = version >= self.learned_at or told or USER.hint in said
        topic = body["messages"][0]["content"].partition("\n")[0].strip("?")
        return await self._stream(request, (SHORT if good else LONG).format(topic=topic), version)

    async def _stream(self, request: web.Request, text: str, version: int) -> web.StreamResponse:
        headers = {
            "Content-Type": "text/event-stream",
            "X-Adapter-Version": str(version),
            "X-Turn-Id": "turn",
        }
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        await response.write(
            _frame(choices=[{"index": 0, "delta": {"content": text}, "finish_reason": None}])
        )
        await response.write(_frame(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}]))
        usage = {"prompt_tokens": 1, "completion_tokens": len(text.split()), "total_tokens": 1}
        await response.write(_frame(choices=[], usage=usage) + b"data: [DONE]\n\n")
        return response


def _frame(**fields: Any) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", **fields}
    return b"data: " + orjson.dumps(chunk) + b"\n\n"


@dataclass(slots=True)
class Silent:
    """A progress that only counts; `stop_after` sessions it raises,
    as a process that dies between two things."""

    stop_after: int = 10_000
    sessions: list[tuple[RunKey, int]] = field(default_factory=list)
    steps: list[tuple[RunKey, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def begun(self, key: RunKey, past: Past) -> None:
        pass

    def session(self, key: RunKey, line: Line) -> None:
        self.sessions.append((key, line["session"]))
        if len(self.sessions) >= self.stop_after:
            raise Died

    def step(self, key: RunKey, name: str, line: Line) -> None:
        self.steps.append((key, name))

    def note(self, key: RunKey, text: str) -> None:
        self.notes.append(text)


class Died(Exception):
    """The process is taken to have died here."""


def lines_of(journal: Journal, key: RunKey, event: str) -> list[Line]:
    """Return a run's lines of one kind."""
    return [line for line in journal.lines if line["run"] == str(key) and line["event"] == event]
