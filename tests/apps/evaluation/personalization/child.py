"""A benchmark in a process of its own, to be killed:
`python -m … BASE_URL JOURNAL`, against a world that another process holds."""

import asyncio
import sys
from pathlib import Path

import django

from apps.evaluation.chat import Chat, RequestLog
from apps.evaluation.personalization.methods import Method
from apps.evaluation.personalization.run import Subject


class Remote:
    """An operator who only knows the address."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    async def open(self, *, method: Method, tenant: str) -> Subject:
        slug = tenant or f"{method.name}-child"
        user, examiner = (Chat(base_url=self._base_url, api_key=slug, log=RequestLog()) for _ in range(2))
        return Subject(tenant=slug, policy="default", user=user, examiner=examiner)

    async def rest(self, subject: Subject) -> None:
        pass

    async def close(self, subject: Subject) -> None:
        await subject.user.close()
        await subject.examiner.close()


if __name__ == "__main__":
    django.setup()
    from apps.evaluation.personalization.course import carry_out
    from apps.evaluation.personalization.journal import Journal
    from tests.apps.evaluation.personalization.fake_world import Silent, plan_of

    with Journal(Path(sys.argv[2]), code="child", machine="2 cores") as journal:
        asyncio.run(
            carry_out(plan_of("opd"), journal=journal, platform=Remote(sys.argv[1]), progress=Silent())
        )
