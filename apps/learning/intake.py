"""How many more rollouts of a policy may begin: counted from rows each time, so a restart changes nothing."""

from typing import Any

from django.conf import settings
from django.utils import timezone

from apps.adapters.models import Policy
from apps.conversations.models import Turn, TurnKind
from apps.learning.config import resolve
from apps.learning.models import Sample, SampleState
from apps.learning.rules.admission import Intake, room
from apps.learning.waiting import HOLDS_UP, under_way
from kernel.ids import first_id_at


def rollout_gate() -> dict[str, Any]:
    """Return what `attune_admit_rollout` must know besides the request: the defaults, and how far back work counts."""
    return {
        "batch_size": settings.TRAINING_BATCH,
        "max_staleness": settings.TRAINING_MAX_STALENESS,
        "since": first_id_at(timezone.now() - HOLDS_UP),
    }


def intake_of(policy: Policy) -> Intake:
    """Return a policy's counters, from its rows."""
    return Intake(
        version=policy.live.depth if policy.live else 0,
        waiting=Sample.objects.filter(
            policy=policy, state__in=(SampleState.READY, SampleState.CLAIMED)
        ).count(),
        running=under_way(policy.id).count(),
    )


def room_of(policy: Policy) -> int:
    """Return how many more rollouts may begin now; not above 0: none."""
    config = resolve(policy.config)
    return room(intake_of(policy), staleness=config.max_staleness, batch=config.batch_size)


def rollouts_begun(policy: Policy) -> int:
    """Return how many rollouts of a policy began, from their first turns: what `RolloutGate.admitted` counts too."""
    return Turn.objects.filter(policy=policy, kind=TurnKind.ROLLOUT, side=False, parent=None).count()
