"""The scripted user talks: many short sessions, a few at a time, about one batch ahead of the trainer."""

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from openai.types.chat import ChatCompletionMessageParam

from apps.evaluation.chat import Chat, Reply, RequestFailed
from apps.evaluation.talk import TEMPERATURE, Answer, hold_session
from apps.evaluation.users import MAX_TOKENS, Lines, ScriptedUser

_PAUSE_S = 2.0  # after a failed request
_SETTLES_S = 2.0  # until an answered turn surely shows in the ledger's figures
_TURNS = 2
"""A question, and what the user says of its reply: more complaints would teach the same."""


@dataclass(frozen=True, slots=True)
class Manner:
    """Who talks, and how they address the policy."""

    user: ScriptedUser
    model: str
    temperature: float = TEMPERATURE


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
        """First replies."""
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
        """Whether at least two of the last eight first replies were right:
        before that no version is worth an exam."""
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
        first: list[Answer] = []

        def heard(answer: Answer) -> None:
            if not first:
                first.append(answer)
                self._note(answer)

        async def ask(messages: list[ChatCompletionMessageParam]) -> Reply:
            return await self._ask(messages, session)

        with contextlib.suppress(RequestFailed):
            await hold_session(ask, self._manner.user, lines, turns=_TURNS, heard=heard)
        if not first:
            await asyncio.sleep(_PAUSE_S)
            self._ahead -= 1

    def _note(self, answer: Answer) -> None:
        self.answers.append(answer)
        if answer.verdict.passed:
            self.thanks += 1
        else:
            self.complaints += 1
        # from here the ledger counts the turn itself
        asyncio.get_running_loop().call_later(_SETTLES_S, self._settled)

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
