"""The scripted user talks: asks, reads the first reply, complains or thanks, leaves."""

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from openai.types.chat import ChatCompletionMessageParam

from apps.evaluation.demo.chat import Chat, Reply, RequestFailed
from apps.evaluation.demo.rule import Verdict, one_short_sentence
from apps.evaluation.demo.script import Lines, Question
from apps.evaluation.demo.topic import is_on_topic

MAX_TOKENS = 200  # long enough that nothing passes by being cut
_PAUSE_S = 2.0  # after a failed request
_SETTLES_S = 2.0  # until an answered turn surely shows in the ledger's figures


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply to a question, judged by the user's rule and, apart from it, for its topic."""

    question: Question
    reply: Reply
    verdict: Verdict
    on_topic: bool


def judge_reply(question: Question, reply: Reply) -> Answer:
    """Apply the rule and the topic guard."""
    return Answer(
        question=question,
        reply=reply,
        verdict=one_short_sentence(reply.text, finish_reason=reply.finish_reason),
        on_topic=is_on_topic(reply.text, question=question.text, keywords=question.keywords),
    )


@dataclass(frozen=True, slots=True)
class Manner:
    """How the user addresses the policy."""

    model: str
    temperature: float = 0.7


class Talker:
    """Holds sessions in parallel for as long as `wanted()` asks for more of them.

    `wanted` returns how many answered or running sessions may be ahead of the trainer; it is asked with the
    number of sessions that are running now, and answers with how many more may start.
    """

    def __init__(
        self,
        chat: Chat,
        slots: asyncio.Semaphore,
        lines: Iterator[Lines],
        manner: Manner,
        *,
        wanted: Callable[[int], int],
    ) -> None:
        self.answers: list[Answer] = []
        self.complaints = 0
        self.thanks = 0
        self._chat = chat
        self._slots = slots
        self._lines = lines
        self._manner = manner
        self._wanted = wanted
        self._ahead = 0
        self._sessions: set[asyncio.Task[None]] = set()

    @property
    def promising(self) -> bool:
        """Whether at least two of the last eight first replies were right: before that no version is worth an exam."""
        return sum(answer.verdict.passed for answer in self.answers[-8:]) >= 2

    async def talk(self) -> None:
        """Start sessions as they are wanted, until cancelled."""
        while True:
            for _ in range(self._wanted(self._ahead)):
                self._ahead += 1
                task = asyncio.create_task(self._session(next(self._lines)))
                self._sessions.add(task)
                task.add_done_callback(self._sessions.discard)
            await asyncio.sleep(0.5)

    async def drain(self) -> None:
        """Wait for the sessions that are running."""
        await asyncio.gather(*self._sessions)

    async def _session(self, lines: Lines) -> None:
        session = f"demo-{uuid.uuid4().hex[:16]}"
        messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": lines.question.text}]
        try:
            first = await self._ask(messages, session)
        except RequestFailed:
            await asyncio.sleep(_PAUSE_S)
            self._ahead -= 1
            return
        answer = judge_reply(lines.question, first)
        self.answers.append(answer)
        if answer.verdict.passed:
            self.thanks += 1
        else:
            self.complaints += 1
        says = lines.thanks if answer.verdict.passed else lines.complaint
        messages.append({"role": "assistant", "content": first.text})
        messages.append({"role": "user", "content": says})
        # from here the ledger counts the turn itself
        asyncio.get_running_loop().call_later(_SETTLES_S, self._settled)
        with contextlib.suppress(RequestFailed):
            await self._ask(messages, session)

    def _settled(self) -> None:
        self._ahead -= 1

    async def _ask(self, messages: list[ChatCompletionMessageParam], session: str) -> Reply:
        async with self._slots:
            return await self._chat.ask(
                messages,
                model=self._manner.model,
                purpose="talk",
                max_tokens=MAX_TOKENS,
                temperature=self._manner.temperature,
                session=session,
            )
