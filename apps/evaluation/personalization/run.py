"""What every run has in hand: its key, its user, the policy it works on, and the journal it writes."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from openai.types.chat import ChatCompletionMessageParam

from apps.evaluation.chat import Chat, Reply
from apps.evaluation.guards import describe
from apps.evaluation.measure import measure, until_answered
from apps.evaluation.personalization.journal import Journal, Line, Past
from apps.evaluation.personalization.methods import Method
from apps.evaluation.personalization.plan import RunKey, Terms
from apps.evaluation.personalization.references import as_measured
from apps.evaluation.talk import TEMPERATURE, Talk, hold_session
from apps.evaluation.users import MAX_TOKENS, Lines, ScriptedUser

PLACES = 8
"""Requests of one run at a time; the embedded engine runs as many."""
RETRY_S = 3.0
NOTED = 10
"""Replies between two words on how far an examination is."""
FROZEN = Method("reference", "the bare base")


class OutOfTime(Exception):
    """The minutes given are over; what was found out is in the journal."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The policy of one run, alone in a tenant of its own. `user` may chat, `examiner` may name versions."""

    tenant: str
    policy: str
    user: Chat
    examiner: Chat
    handle: object = None
    """What the platform knows it by."""


class Platform(Protocol):
    """What a benchmark needs besides `/v1`: what an operator does before a run and after it."""

    async def open(self, *, method: Method, tenant: str) -> Subject | None:
        """Make a tenant, a policy and keys, or find those of `tenant` again (None where they are gone)."""

    async def rest(self, subject: Subject) -> None:
        """Stop whatever changes the policy, for good, and return once nothing is under way any more:
        what is live then stays."""

    async def account(self, subject: Subject) -> Mapping[str, Any]:
        """Return what the platform did meanwhile: steps, shadow tokens, versions and how they were chosen."""

    async def close(self, subject: Subject) -> None:
        """Revoke the keys and close the connections."""


class Progress(Protocol):
    """Who is told how far a benchmark is."""

    def begun(self, key: RunKey, past: Past) -> None:
        """Note that a run begins or goes on."""

    def session(self, key: RunKey, line: Line) -> None:
        """Note that a session is over."""

    def step(self, key: RunKey, name: str, line: Line) -> None:
        """Note that something else of a run is known."""

    def note(self, key: RunKey, text: str) -> None:
        """Say what is going on in between; nothing of it is kept."""


@dataclass(slots=True)
class Run:
    """One run under way."""

    key: RunKey
    method: Method
    user: ScriptedUser
    terms: Terms
    fingerprint: str
    journal: Journal
    past: Past
    subject: Subject
    platform: Platform
    progress: Progress
    until: float = float("inf")
    """When to stop beginning things, on the monotonic clock."""
    base: Mapping[str, Any] | None = None
    """What the bare base does for this user, where it was measured already."""
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PLACES))

    def check_time(self) -> None:
        """Raise OutOfTime where the minutes are over."""
        if time.monotonic() >= self.until:
            raise OutOfTime(str(self.key))

    async def step(self, name: str, find: Callable[[], Awaitable[Mapping[str, Any]]]) -> Line:
        """Return what the journal has under `name`, or find it out and write it down."""
        if name not in self.past.steps:
            self.check_time()
            found = await find()
            self.past.steps[name] = self.write(name, **found)
            self.progress.step(self.key, name, self.past.steps[name])
        return self.past.steps[name]

    def write(self, event: str, **found: Any) -> Line:
        """Write a line of this run."""
        return self.journal.write(event, self.key, self.fingerprint, **found)

    async def talk(self, lines: Lines, *, turns: int) -> tuple[Talk, int]:
        """Hold one session with the policy as it is served;
        return it and how many requests failed and were asked again."""
        session = f"user-{uuid.uuid4().hex[:16]}"
        failed = 0

        async def ask(messages: list[ChatCompletionMessageParam]) -> Reply:
            nonlocal failed
            asked = 0

            async def once() -> Reply:
                nonlocal asked
                asked += 1
                async with self.slots:
                    return await self.subject.user.ask(
                        messages,
                        model=self.subject.policy,
                        purpose="talk",
                        max_tokens=MAX_TOKENS,
                        temperature=TEMPERATURE,
                        session=session,
                    )

            reply = await until_answered(once, pause_s=RETRY_S)
            failed += asked - 1
            return reply

        return await hold_session(ask, self.user, lines, turns=turns), failed

    async def exam(
        self, version: int, *, hint: str = "", memory: bool = False, times: int = 1
    ) -> dict[str, Any]:
        """Ask the questions for reporting of one version, with nothing in the prompt but what is named here.

        The bare base is asked once for all runs of a user.
        """
        if version == 0 and self.base is not None and not hint and not memory:
            return as_measured(self.base)
        failed = len(self.subject.examiner.log.failures)
        began = time.monotonic()
        questions = self.user.tasks.reporting[: self.terms.questions]
        replies = self.terms.replies * times
        every, written = len(questions) * replies, 0

        def heard() -> None:
            nonlocal written
            written += 1
            if written % NOTED == 0 and written < every:
                left = (time.monotonic() - began) * (every - written) / written
                self.progress.note(self.key, f"{written} of {every} replies, about {left:.0f} s left of them")

        measured = await measure(
            self.subject.examiner,
            self.slots,
            user=self.user,
            policy=self.subject.policy,
            version=version,
            questions=questions,
            replies=replies,
            hint=hint,
            memory=memory,
            max_tokens=self.user.reply_tokens,
            heard=heard,
        )
        return {
            **describe(
                measured,
                questions=len(questions),
                failed=len(self.subject.examiner.log.failures) - failed,
            ),
            "seconds": round(time.monotonic() - began, 1),
        }

    async def live_version(self) -> int:
        """Return which version answers now, as `/v1/models` says."""
        ask = partial(self.subject.user.live_version, self.subject.policy)
        return await until_answered(ask, pause_s=RETRY_S)

    async def preferences(self) -> dict[str, int]:
        """Return how many preferences the platform remembers, by state, as `/v1/memory` says;
        those that are active are in prompts."""
        ask = partial(self.subject.user.preferences, self.subject.policy)
        return await until_answered(ask, pause_s=RETRY_S)
