"""Which policies may be taught, and what is taken back once something else is wanted."""

import uuid

from django.db.models import F, Max, Q

from apps.adapters.models import Policy
from apps.conversations.models import TurnKind
from apps.judging.reasons import Reason
from apps.learning.models import Sample, SampleState
from apps.learning.withdrawn import set_aside
from apps.memory.lessons import Standing
from apps.memory.models import Lesson, LessonState, Preference, PreferenceState
from kernel.locks import locked


def candidates() -> list[tuple[uuid.UUID, uuid.UUID]]:
    """Return (tenant, policy) of those in scope that are told something or taught,
    those that waited longest first.

    Who was never taught comes before all others. What left the prompt is taught on until no version is
    better, so the lesson says it where no preference does.
    """
    told = Preference.objects.filter(state=PreferenceState.ACTIVE).values("policy_id")
    taught = Lesson.objects.filter(state=LessonState.TEACHING).values("policy_id")
    rows = (
        Policy.objects.filter(Q(pk__in=told) | Q(pk__in=taught))
        .filter(training_enabled=True, tenant__training_enabled=True, tenant__paused_at=None)
        .annotate(last=Max("lessons__changed_at"))
        .order_by(F("last").asc(nulls_first=True), "pk")
    )
    return list(rows.values_list("tenant_id", "pk"))


def drop_outdated(policy: Policy, stands: Standing | None) -> int:
    """Take back waiting shadow samples that teach anything but what stands now,
    word for word; return how many."""
    wanted = (stands.entries, stands.hint) if stands is not None else None
    waiting = locked(
        Sample.objects.filter(policy=policy, source=TurnKind.SHADOW, state=SampleState.READY),
        skip_locked=True,
    )
    taught = waiting.values_list("pk", "hints__0__preferences", "hints__0__text")
    outdated = [pk for pk, preferences, text in taught if (preferences, text) != wanted]
    return set_aside(outdated, SampleState.DROPPED, Reason.UNWANTED)
