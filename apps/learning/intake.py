"""How many more rollouts of a policy may begin:
`attune_admit_rollout` counts rows each time, so a restart changes nothing."""

from typing import Any

from django.conf import settings
from django.utils import timezone

from apps.learning.waiting import HOLDS_UP
from kernel.ids import first_id_at


def rollout_gate() -> dict[str, Any]:
    """Return what `attune_admit_rollout` must know besides the request:
    the defaults, and how far back work counts."""
    return {
        "batch_size": settings.TRAINING_BATCH,
        "max_staleness": settings.TRAINING_MAX_STALENESS,
        "since": first_id_at(timezone.now() - HOLDS_UP),
    }
