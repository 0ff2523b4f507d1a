"""Put the demo together: policy and keys, the two faces of the user, the screen, the report."""

import asyncio
import importlib.metadata
from collections.abc import Callable
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.utils import timezone
from rich.console import Console

from apps.evaluation.chat import Chat, RequestLog
from apps.evaluation.choice import Aims
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
