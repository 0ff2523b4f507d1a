"""Tell it once: one complaint, then the clock.

What the next replies are like, and when it need not be said any more.
"""

import asyncio
import itertools
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from openai.types.chat import ChatCompletionMessageParam

from apps.evaluation.chat import Chat, Reply
from apps.evaluation.measure import Measurement, measure, until_answered
from apps.evaluation.talk import TEMPERATURE, Answer, judge_reply
from apps.evaluation.users import MAX_TOKENS, Lines, Question, ScriptedUser, plan_sessions

EXAMINED_FROM_S = 240.0
"""With less time than this no version is examined: the time goes to the shortest course there is."""
REMEMBERED_WITHIN_S = 60.0
LOOK_EVERY_S = 2.0
PLACES = 8
PAUSE_S = 2.0
QUESTIONS = 10
"""A user who is content with so many first replies in a row has nothing to complain of."""

Account = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """A reply that is shown: when it came, who gave it, what its prompt was told,
    and whether it was to taste."""

    at_s: float
    what: str
    version: int
    told: str
    answer: Answer


@dataclass(slots=True)
class Course:
    """What happened."""

    complaint: str = ""
    seen: list[Seen] = field(default_factory=list)
    before: Measurement | None = None
    after: Measurement | None = None
    remembered_s: float | None = None
    """From the complaint until the preference was listed."""
    live: list[tuple[float, int]] = field(default_factory=list)
    """Seconds since the complaint, and the version that went live then."""
    left_the_prompt_s: float | None = None
    account: Account = field(default_factory=dict)
    preferences: Mapping[str, int] = field(default_factory=dict)
    why_stopped: str = ""


@dataclass(frozen=True, slots=True)
class Doors:
    """What the demo learns of the platform besides chatting, and what it does to it."""

    account: Callable[[], Awaitable[Account]]
    rest: Callable[[], Awaitable[None]]
    """Stop training and shadow rollouts, so that what is examined stays."""


@dataclass(slots=True)
class Once:
    """The demo under way. `user` chats, `examiner` may name versions; `say` tells the reader what happens."""

    person: ScriptedUser
    policy: str
    user: Chat
    examiner: Chat
    doors: Doors
    budget_s: float
    say: Callable[[str], None]
    course: Course = field(default_factory=Course)
    _began: float = field(default_factory=time.monotonic)
    _told_at: float = 0.0
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PLACES))

    async def run(self, *, seed: int) -> Course:
        """Run it to its end and return what happened."""
        examined = self.budget_s >= EXAMINED_FROM_S
        finish_s = 5.0
        if examined:
            self.say("measuring the bare base on the held-out questions")
            self.course.before = await self._exam(0)
            finish_s = 15.0 + 1.2 * self._elapsed_s
            self.say(
                f"version 0: {self.course.before.score.passed} of {self.course.before.score.of} to taste"
            )
        shown = await self._complain(seed)
        if shown is None:
            self.course.why_stopped = "every first reply was to taste: there was nothing to complain of"
            return self.course
        await self._remembered(shown)
        await self._wait(shown, until_s=self.budget_s - finish_s)
        await self.doors.rest()
        version = await until_answered(lambda: self.user.live_version(self.policy), pause_s=PAUSE_S)
        await self._show(shown, f"version {version}, at the end", version=version)
        if examined:
            self.say(f"measuring version {version} on the held-out questions")
            self.course.after = await self._exam(version)
        self.course.account = await self.doors.account()
        await self._look_at_prompt()
        return self.course

    @property
    def _elapsed_s(self) -> float:
        return time.monotonic() - self._began

    @property
    def _since_s(self) -> float:
        return time.monotonic() - self._told_at if self._told_at else 0.0

    async def _complain(self, seed: int) -> Question | None:
        """Ask until a first reply is not to taste and complain of it;
        return the question that is shown from then on."""
        for lines in itertools.islice(plan_sessions(self.person, seed=seed), QUESTIONS):
            session = f"demo-{uuid.uuid4().hex[:16]}"
            first = await self._ask([lines.question.text], session=session)
            answer = judge_reply(self.person, lines.question, first)
            if answer.verdict.passed:
                continue
            self._note(Seen(0.0, "before", first.version, "nothing", answer))
            await self._tell(lines, first, session)
            return self._another(lines.question)
        return None

    async def _tell(self, lines: Lines, first: Reply, session: str) -> None:
        self.course.complaint = lines.complaints[0]
        self.say(f"the one complaint: {self.course.complaint}")
        self._told_at = time.monotonic()
        again = await self._ask([lines.question.text, first.text, self.course.complaint], session=session)
        answer = judge_reply(self.person, lines.question, again)
        self._note(Seen(self._since_s, "the reply to the complaint", again.version, "the complaint", answer))

    def _another(self, asked: Question) -> Question:
        """Return a question that nobody has asked and nobody is taught with."""
        return next(one for one in self.person.tasks.choosing if one.text != asked.text)

    async def _remembered(self, shown: Question) -> None:
        while not (known := await self._preferences()) and self._since_s < REMEMBERED_WITHIN_S:
            await asyncio.sleep(0.5)
        if known:
            self.course.remembered_s = round(self._since_s, 1)
            self.say(f"remembered after {self.course.remembered_s:.0f} s")
        live = await until_answered(lambda: self.user.live_version(self.policy), pause_s=PAUSE_S)
        what = "the next question, in a new session"
        await self._show(shown, what, version=live, told="what is remembered", memory=True)

    async def _wait(self, shown: Question, *, until_s: float) -> None:
        """Leave the platform alone until the weights hold it or the time is over;
        show the first version without being told."""
        live = 0
        while self._elapsed_s < until_s:
            account = await self.doors.account()
            now = await until_answered(lambda: self.user.live_version(self.policy), pause_s=PAUSE_S)
            if now != live:
                live = now
                self.course.live.append((round(self._since_s, 1), live))
                self.say(f"version {live} is live: {_passes(account, live)}")
                if len(self.course.live) == 1:
                    await self._show(shown, f"version {live}, the first", version=live)
            state = account.get("lesson", {}).get("state", "")
            await self._look_at_prompt()
            if state == "held":
                self.course.why_stopped = "the weights hold it"
                return
            if state == "plateau":
                self.course.why_stopped = f"no better version came any more: {account['lesson']['reason']}"
                return
            await asyncio.sleep(min(LOOK_EVERY_S, max(0.0, until_s - self._elapsed_s)))
        self.course.why_stopped = (
            "the time was over"
            if self.course.live
            else "the time was over before any version was made: give it more --minutes"
        )

    async def _look_at_prompt(self) -> None:
        """Note when nothing was told any more.

        It leaves the prompt while teaching goes on, and may come back.
        """
        course = self.course
        course.preferences = await self._preferences()
        if not course.preferences.get("learned") or course.preferences.get("active"):
            course.left_the_prompt_s = None
        elif course.left_the_prompt_s is None:
            course.left_the_prompt_s = round(self._since_s, 1)
            self.say("the prompt says it no more")

    async def _show(
        self, question: Question, what: str, *, version: int, told: str = "nothing", memory: bool = False
    ) -> None:
        """Ask for the version by its number: then the question is no stored one, and is never taught with."""
        reply = await self._ask(
            [question.text],
            session=f"demo-{uuid.uuid4().hex[:16]}",
            model=f"{self.policy}@{version}",
            chat=self.examiner,
            memory=memory,
        )
        answer = judge_reply(self.person, question, reply)
        self._note(Seen(self._since_s, what, reply.version, told, answer))

    async def _ask(
        self,
        said: list[str],
        *,
        session: str,
        model: str = "",
        chat: Chat | None = None,
        memory: bool | None = None,
    ) -> Reply:
        messages: list[ChatCompletionMessageParam] = [
            {"role": "assistant", "content": text} if number % 2 else {"role": "user", "content": text}
            for number, text in enumerate(said)
        ]

        async def once() -> Reply:
            return await (chat or self.user).ask(
                messages,
                model=model or self.policy,
                purpose="talk",
                max_tokens=MAX_TOKENS,
                temperature=TEMPERATURE,
                session=session,
                memory=memory,
            )

        return await until_answered(once, pause_s=PAUSE_S)

    async def _exam(self, version: int) -> Measurement:
        return await measure(
            self.examiner,
            self._slots,
            user=self.person,
            policy=self.policy,
            version=version,
            questions=self.person.tasks.reporting,
            replies=1,
            max_tokens=self.person.reply_tokens,
        )

    async def _preferences(self) -> dict[str, int]:
        return await until_answered(lambda: self.user.preferences(self.policy), pause_s=PAUSE_S)

    def _note(self, seen: Seen) -> None:
        self.course.seen.append(seen)
        verdict = "to taste" if seen.answer.verdict.passed else seen.answer.verdict.reason
        self.say(f"{seen.what} (told: {seen.told}): {verdict}")


def _passes(account: Account, version: int) -> str:
    """Return what choosing found of a version, in words."""
    course = account.get("lesson", {}).get("course", ())
    step = next((one for one in course if one["version"] == version), None)
    if step is None:
        return "made of the complaint itself"
    return f"{step['passes']} of {step['of']} choosing questions pass untold"
