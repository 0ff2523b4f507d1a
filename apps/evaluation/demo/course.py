"""Put the demo together: policy and keys, the two faces of the user, the screen, the report."""

import asyncio
import importlib.metadata
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.utils import timezone
from rich.console import Console

from apps.evaluation.chat import Chat, RequestLog
from apps.evaluation.choice import Aims
from apps.evaluation.demo import once, once_report
from apps.evaluation.demo import subject as subjects
from apps.evaluation.demo.board import Board
from apps.evaluation.demo.ledger import count_talk, read_facts, read_versions
from apps.evaluation.demo.report import build_report
from apps.evaluation.demo.screen import Screen
from apps.evaluation.demo.subject import Prepared, prepared
from apps.evaluation.demo.talk import Talker
from apps.evaluation.demo.teach import Course, Doors, teach
from apps.evaluation.operating import await_engine
from apps.evaluation.patience import patiently
from apps.evaluation.personalization.methods import find_methods
from apps.evaluation.personalization.switches import refuse_what_is_missing
from apps.evaluation.stack import Stack
from apps.evaluation.users import load_user


def run_course(*, stack: Stack, minutes: float, seed: int, resume: bool, console: Console) -> dict[str, Any]:
    """Run the demo against a platform and return its report."""
    await_engine(lambda line: console.print(line, markup=False))
    log = RequestLog()
    started_at = timezone.now()
    with prepared(tenant_slug=stack.tenant, api_key=stack.api_key, resume=resume) as ready:
        board = Board(read=partial(read_facts, ready.subject), budget_s=minutes * 60)
        console.print(
            f"Teaching the policy {ready.policy} of tenant {stack.tenant}: one short sentence, please."
        )
        with Screen(console) as screen:
            course, talker = asyncio.run(
                _teach(stack, ready, board=board, log=log, seed=seed, seen=lambda: screen.show(board, log))
            )
        board.facts = patiently(board.read)
        return build_report(
            board=board,
            course=course,
            talker=talker,
            log=log,
            versions=patiently(partial(read_versions, ready.subject)),
            talk=patiently(partial(count_talk, ready.subject)),
            about={
                "tenant": stack.tenant,
                "policy": ready.policy,
                "seed": seed,
                "started_at": started_at.isoformat(),
                "minutes_allowed": minutes,
                "base_model": settings.BASE_MODEL_NAME,
                "openai_client": importlib.metadata.version("openai"),
            },
        )


def run_once(*, stack: Stack, minutes: float, seed: int, console: Console) -> dict[str, Any]:
    """Tell it once against a platform and return the report.

    Raises InvalidInput where shadow rollouts are switched off.
    """
    refuse_what_is_missing(find_methods(["joined"]))
    await_engine(lambda line: console.print(line, markup=False))
    log, began, started_at = RequestLog(), time.monotonic(), timezone.now()
    with prepared(tenant_slug=stack.tenant, api_key=stack.api_key, resume=False, remembers=True) as ready:
        console.print(
            f"Telling the policy {ready.policy} of tenant {stack.tenant} once: one short sentence, please."
        )

        def say(line: str) -> None:
            console.print(f"{time.monotonic() - began:6.0f} s  {line}", markup=False, soft_wrap=True)

        course = asyncio.run(_tell(stack, ready, log=log, budget_s=minutes * 60, seed=seed, say=say))
        about = {
            "tenant": stack.tenant,
            "policy": ready.policy,
            "seed": seed,
            "started_at": started_at.isoformat(),
            "minutes_allowed": minutes,
            "base_model": settings.BASE_MODEL_NAME,
            "openai_client": importlib.metadata.version("openai"),
        }
        return once_report.build_report(course, log=log, seconds=time.monotonic() - began, about=about)


async def _tell(
    stack: Stack, ready: Prepared, *, log: RequestLog, budget_s: float, seed: int, say: Callable[[str], None]
) -> once.Course:
    user = Chat(base_url=stack.api_base, api_key=ready.user_key, log=log)
    examiner = Chat(base_url=stack.api_base, api_key=ready.examiner_key, log=log)

    async def account() -> Mapping[str, Any]:
        return await sync_to_async(patiently)(partial(subjects.account, ready.subject))

    async def rest() -> None:
        await sync_to_async(patiently)(partial(subjects.rest, ready.subject))

    try:
        return await once.Once(
            person=load_user("one-short-sentence"),
            policy=ready.policy,
            user=user,
            examiner=examiner,
            doors=once.Doors(account=account, rest=rest),
            budget_s=budget_s,
            say=say,
        ).run(seed=seed)
    finally:
        await user.close()
        await examiner.close()


async def _teach(
    stack: Stack, ready: Prepared, *, board: Board, log: RequestLog, seed: int, seen: Callable[[], None]
) -> tuple[Course, Talker]:
    user = Chat(base_url=stack.api_base, api_key=ready.user_key, log=log)
    examiner = Chat(base_url=stack.api_base, api_key=ready.examiner_key, log=log)

    async def go_back(version: int) -> None:
        back = partial(subjects.go_back, tenant=stack.tenant, policy=ready.policy, version=version)
        await sync_to_async(patiently)(back)

    async def pause_training() -> None:
        await sync_to_async(patiently)(partial(subjects.pause_training, ready.subject))

    try:
        return await teach(
            board=board,
            policy=ready.policy,
            person=load_user("one-short-sentence"),
            seed=seed,
            batch=settings.TRAINING_BATCH,
            user=user,
            examiner=examiner,
            doors=Doors(go_back=go_back, pause_training=pause_training),
            aims=Aims(),
            seen=seen,
        )
    finally:
        await user.close()
        await examiner.close()
