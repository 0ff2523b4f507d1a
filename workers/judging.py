"""Judge turns."""

import uuid

from apps.judging import services
from kernel.tenancy import tenant_scope
from workers.tasks import task


@task("workers.judging.judge_turn")
def judge_turn(*, tenant_id: str, turn_id: str) -> None:
    """Judge one turn; a judge that does not answer is asked again by a later message."""
    with tenant_scope(tenant_id):
        services.judge(turn_id=uuid.UUID(turn_id))


@task("workers.judging.rejudge")
def rejudge(*, tenant_id: str, rejudging_id: str) -> None:
    """Judge the next turns of a window that is judged again; the rest is a later message."""
    with tenant_scope(tenant_id):
        services.rejudge_some(rejudging_id=uuid.UUID(rejudging_id))
