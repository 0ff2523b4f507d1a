"""While a child works: keep the leases of the runs it works on, note the progress,
say when it is for nothing."""

import logging
import time
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from apps.learning import runs
from apps.learning.runs import Claim
from kernel.tenancy import tenant_scope
from trainer.contracts import ProgressEvent

logger = logging.getLogger(__name__)

PROGRESS_S = 1.0  # between two writes of progress


class LeaseKeeper:
    """Called with the child's newest progress;
    each run has its own lease, and one that is lost stops no other."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._held = list(claims)
        self._due = 0.0
        self._written: ProgressEvent | None = None

    def __call__(self, progress: ProgressEvent | None) -> str:
        """Return why to stop, or ""."""
        now = time.monotonic()
        if now < self._due:
            return ""
        fresh = progress if progress is not self._written else None
        self._due = now + min(PROGRESS_S, settings.LEASE_S / 4)
        try:
            self._held = [claim for claim in self._held if _keep(claim, fresh)]
        except (OperationalError, InterfaceError) as error:
            # the commit asks again whether the lease still counts
            logger.warning("no heartbeat: %s", error)
            connection.close()
            return ""
        self._written = progress
        return "" if self._held else "the lease is lost"


def _keep(claim: Claim, progress: ProgressEvent | None) -> bool:
    mine = progress if progress is not None and progress.run_id == str(claim.run.id) else None
    with tenant_scope(claim.policy.tenant_id):
        return runs.heartbeat(run_id=claim.run.id, fence=claim.fence, progress=_shown(mine) if mine else None)


def _shown(progress: ProgressEvent) -> dict[str, Any]:
    return {
        "phase": progress.phase,
        "done": progress.done,
        "total": progress.total,
        "seconds": progress.seconds,
    }
