"""The demo's course: measure version 0, talk until it is learned, choose a version, measure that one."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from apps.evaluation.chat import Chat, RequestFailed
from apps.evaluation.choice import Aims, Step, best_version, contenders, next_step
from apps.evaluation.demo.board import Board
from apps.evaluation.demo.talk import Manner, Talker
from apps.evaluation.demo.trickle import trickle
from apps.evaluation.measure import Measurement, measure
from apps.evaluation.users import Question, ScriptedUser, plan_sessions

PLACES = 7
"""Requests at a time; the embedded engine runs eight, and the trickle needs one."""
HELD_OUT_REPLIES = 3
FIRST_LOOK, SECOND_LOOK = 1, 1
"""Validation replies per question; the second look is only worth it where the first one saw something."""
WORTH_IT = 0.25
FINISH_S = 120.0
FINISH_PER_MEASUREMENT = 0.6
"""Time kept for comparing the best versions and for the last measurement:
so much, and this part of what the first measurement took, whose replies were longer."""
LAST_RUN_S = 60.0
"""How long a step under way may still take once the talk is over."""


@dataclass(frozen=True, slots=True)
class Doors:
    """What the demo does to the platform besides chatting; each is what an operator can do."""

    go_back: Callable[[int], Awaitable[None]]
    """Move the live pointer back to a version."""
    pause_training: Callable[[], Awaitable[None]]
    """Stop training on the policy, so that what was chosen stays."""


@dataclass(slots=True)
class Course:
    """What happened, for the report."""

    before: Measurement
    after: Measurement
    chosen: int
    newest: int
    went_back: list[tuple[int, int]] = field(default_factory=list)
    why_stopped: str = ""


async def teach(
    *,
    board: Board,
    policy: str,
    person: ScriptedUser,
    seed: int,
    batch: int,
    user: Chat,
    examiner: Chat,
    doors: Doors,
    aims: Aims,
    seen: Callable[[], None],
) -> tuple[Course, Talker]:
    """Run the demo to its end. `user` chats, `examiner` may name versions;
    `seen` is called when figures change."""
    slots = asyncio.Semaphore(PLACES)  # first come, first served: talk and measurement share the engine
    talker = Talker(
        user,
        slots,
        plan_sessions(person, seed=seed),
        Manner(person, policy),
        wanted=lambda ahead: room(board, ahead=ahead, batch=batch),
    )
    exam = _Exam(board, policy, person, examiner, slots)
    async with _beside(board.watch(seen), trickle(user, policy=policy)):
        board.phase = "measuring version 0 on the held-out questions"
        before = await exam.held_out(0)
        board.note(
            f"version 0: {before.score.passed} of {before.score.of} held-out replies to the user's taste"
        )
        board.phase = "talking"
        course = Course(before=before, after=before, chosen=0, newest=0)
        board.talk_until_s = board.budget_s - FINISH_S - FINISH_PER_MEASUREMENT * board.elapsed_s
        async with _beside(talker.talk()):
            await _until_learned(board, exam, talker, doors=doors, aims=aims, course=course)
        board.phase = "choosing a version"
        await doors.pause_training()
        await talker.drain()
        await _until_quiet(board)
        await _choose(board, exam, doors, course)
        board.phase = f"measuring version {course.chosen} on the held-out questions"
        course.after = await exam.held_out(course.chosen)
        await _confirm(user, policy, course.chosen)
    return course, talker


def room(board: Board, *, ahead: int, batch: int) -> int:
    """Return how many sessions may start: talk stays about one batch ahead of the trainer, never far more.

    Samples that wait while the policy moves on grow stale; too few leave the trainer idle.
    """
    waiting = board.facts.ready + board.facts.unsettled
    return max(0, batch + 2 - waiting - ahead)


class _Exam:
    """Measures versions and keeps the scores on the board."""

    def __init__(
        self, board: Board, policy: str, person: ScriptedUser, chat: Chat, slots: asyncio.Semaphore
    ) -> None:
        self._board = board
        self._policy = policy
        self._person = person
        self._chat = chat
        self._slots = slots

    async def held_out(self, version: int) -> Measurement:
        """Ask the questions for reporting, three replies each."""
        return await self._measure(version, self._person.tasks.reporting, HELD_OUT_REPLIES)

    async def validate(self, version: int, *, replies: int) -> None:
        """Ask the questions for choosing and add the answers to the version's score."""
        measured = await self._measure(version, self._person.tasks.choosing, replies)
        known = self._board.measured.get(version)
        self._board.measured[version] = known + measured if known else measured

    async def _measure(self, version: int, questions: Sequence[Question], replies: int) -> Measurement:
        return await measure(
            self._chat,
            self._slots,
            user=self._person,
            policy=self._policy,
            version=version,
            questions=questions,
            replies=replies,
        )

    async def look(self, version: int) -> None:
        """Validate a version: a second time where the first look saw something worth knowing better."""
        await self.validate(version, replies=FIRST_LOOK)
        if self._board.scores[version].rate >= WORTH_IT:
            await self.validate(version, replies=SECOND_LOOK)
        measured = self._board.measured[version]
        self._board.note(
            f"version {version}: {measured.score.passed} of {measured.score.of} validation replies to the user's taste,"
            f" {measured.passed_on_topic} of them on topic"
        )


async def _until_learned(
    board: Board, exam: _Exam, talker: Talker, *, doors: Doors, aims: Aims, course: Course
) -> None:
    """Measure each version as it goes live, once any may be good, and act on it, until it is time to stop."""
    while True:
        if board.elapsed_s > board.talk_until_s:
            course.why_stopped = "time"
            return
        live = board.facts.live
        if live == 0 or live in board.measured or not (talker.promising or board.measured):
            await asyncio.sleep(0.5)
            continue
        await exam.look(live)
        step = next_step(board.scores, newest=live, swaps=board.facts.swaps, aims=aims)
        if step is Step.STOP:
            course.why_stopped = "learned"
            return
        if step is Step.GO_BACK and board.facts.live == live:
            await _go_back(board, doors, course, to=best_version(board.scores))


async def _go_back(board: Board, doors: Doors, course: Course, *, to: int) -> None:
    live = board.facts.live
    await doors.go_back(to)
    course.went_back.append((live, to))
    board.note(f"went back from version {live} to version {to}, which was better on the validation questions")


async def _until_quiet(board: Board) -> None:
    """Let a step that is under way finish, so that it cannot move the pointer after the choice."""
    until = board.elapsed_s + LAST_RUN_S
    await asyncio.sleep(2.0)
    while (board.facts.open_run or board.facts.publishing) and board.elapsed_s < until:
        await asyncio.sleep(0.5)


async def _choose(board: Board, exam: _Exam, doors: Doors, course: Course) -> None:
    """Validate what is new, look at the best two once more, and move to the better one."""
    if board.facts.live and board.facts.live not in board.measured:
        await exam.look(board.facts.live)
    course.newest = board.facts.live
    for version in contenders(board.scores):
        await exam.validate(version, replies=1)
    course.chosen = best_version(board.scores)
    if course.chosen != board.facts.live:
        await _go_back(board, doors, course, to=course.chosen)


async def _confirm(user: Chat, policy: str, chosen: int) -> None:
    """Make sure that the live version, asked for by the policy's name alone, is the chosen one."""
    reply = None
    for _ in range(10):
        with contextlib.suppress(RequestFailed):
            reply = await user.ask(
                [{"role": "user", "content": "Are you there?"}],
                model=policy,
                purpose="trickle",
                max_tokens=4,
                temperature=0.7,
                session=f"confirm-{uuid.uuid4().hex[:16]}",
            )
            break
        await asyncio.sleep(2.0)
    if reply is None or reply.version != chosen:
        got = "nothing" if reply is None else f"version {reply.version}"
        raise RuntimeError(f"version {chosen} was chosen, but {policy} answers with {got}")


@asynccontextmanager
async def _beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run endless work beside a block; if it dies the block is cancelled with its error."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(item) for item in work]
        yield
        for task in tasks:
            task.cancel()
