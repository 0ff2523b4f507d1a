"""Ask fixed questions of one version and count:
through the API, with the scope that keeps them out of training."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from apps.evaluation.chat import Chat, Reply, RequestFailed
from apps.evaluation.choice import Score
from apps.evaluation.talk import TEMPERATURE, Answer, judge_reply
from apps.evaluation.users import MAX_TOKENS, Question, ScriptedUser

T = TypeVar("T")

_TRIES = 100  # with the pause: longer than an engine that was killed takes to come back
_PAUSE_S = 3.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """The answers of one version to a set of questions."""

    version: int
    answers: tuple[Answer, ...]

    @property
    def score(self) -> Score:
        """How many passed."""
        return Score(sum(answer.verdict.passed for answer in self.answers), len(self.answers))

    @property
    def choice_score(self) -> Score:
        """What versions are chosen by: a reply that pleases and says nothing of its
        question is worth nothing."""
        return Score(self.passed_on_topic, len(self.answers))

    @property
    def on_topic(self) -> int:
        """How many are about their question, passed or not."""
        return sum(answer.on_topic for answer in self.answers)

    @property
    def passed_on_topic(self) -> int:
        """How many passed and are about their question."""
        return sum(answer.on_topic and answer.verdict.passed for answer in self.answers)

    @property
    def mean_words(self) -> float:
        """Mean length of the replies in words."""
        return fmean(answer.verdict.words for answer in self.answers) if self.answers else 0.0

    def __add__(self, other: "Measurement") -> "Measurement":
        return Measurement(self.version, self.answers + other.answers)


async def measure(
    chat: Chat,
    slots: asyncio.Semaphore,
    *,
    user: ScriptedUser,
    policy: str,
    version: int,
    questions: Sequence[Question],
    replies: int,
    hint: str = "",
    memory: bool = False,
    max_tokens: int = MAX_TOKENS,
    heard: Callable[[], None] = lambda: None,
) -> Measurement:
    """Return `replies` answers of `policy@version` to each question, in the questions' order,
    judged by the user's rule.

    With a `hint` each question ends with it, in a paragraph of its own, as a teacher reads it; with `memory`
    the prompts are told what the platform remembers of the key's person. Failed requests are logged and asked
    again. `heard` is called for each reply.
    """

    async def ask(question: Question) -> Answer:
        said = f"{question.text}\n\n{hint}" if hint else question.text

        async def once() -> Reply:
            async with slots:
                return await chat.ask(
                    [{"role": "user", "content": said}],
                    model=f"{policy}@{version}",
                    purpose="measure",
                    max_tokens=max_tokens,
                    temperature=TEMPERATURE,
                    session=f"measure-{uuid.uuid4().hex[:16]}",
                    memory=memory,
                )

        reply = await until_answered(once, pause_s=_PAUSE_S)
        if reply.version != version:
            raise RuntimeError(f"asked for version {version}, the reply came from {reply.version}")
        heard()
        return judge_reply(user, question, reply)

    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(ask(question)) for _ in range(replies) for question in questions]
    return Measurement(version, tuple(task.result() for task in asked))


async def until_answered(ask: Callable[[], Awaitable[T]], *, pause_s: float, tries: int = _TRIES) -> T:
    """Return what `ask` returns, asked again after each failed request;
    raises RequestFailed after the last try."""
    for _ in range(tries - 1):
        try:
            return await ask()
        except RequestFailed:
            await asyncio.sleep(pause_s)
    return await ask()
