"""Read how far a policy has drifted: every measure over time, with the bound that held."""

import datetime as dt
import uuid
from dataclasses import dataclass, field, replace

from django.db.models import OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from apps.adapters.models import Policy
from apps.learning.drift.bounds import BOUNDS, Bound
from apps.learning.drift.models import Crossing, DriftReading, Gauge, TrainingPause

READINGS = 100  # of a gauge, the newest


@dataclass(frozen=True, slots=True)
class Point:
    """One reading of one measure. `limit` is the bound that held then, None where it was off."""

    at: dt.datetime
    value: float
    limit: float | None
    run_id: uuid.UUID | None


@dataclass(slots=True)
class Series:
    """One measure over time, oldest first."""

    bound: Bound
    points: list[Point] = field(default_factory=list)
    action: str = ""
    """What a crossing would have done at the newest reading; "" where the bound was off."""

    @property
    def last(self) -> Point | None:
        """The newest reading."""
        return self.points[-1] if self.points else None

    @property
    def past(self) -> bool:
        """Whether the newest reading is past the bound that held."""
        last = self.last
        return last is not None and is_past(self.bound, last.value, last.limit)


def is_past(bound: Bound, value: float, limit: float | None) -> bool:
    """Return whether a value is past the limit that held when it was read;
    never where the bound was off (None)."""
    return limit is not None and replace(bound, limit=limit).crossed(value)


def series(policy_id: uuid.UUID, *, limit: int = READINGS) -> list[Series]:
    """Return every measure that was ever read of a policy, in the order of `bounds`. Three queries."""
    found = {bound.measure: Series(bound) for bound in BOUNDS}
    for gauge in Gauge.values:
        rows = DriftReading.objects.filter(policy_id=policy_id, gauge=gauge).order_by("-created_at")[:limit]
        for row in reversed(rows):
            for measure, value in row.values.items():
                if measure in found:
                    bound = row.bounds.get(measure)
                    found[measure].action = bound[1] if bound else ""
                    found[measure].points.append(
                        Point(row.created_at, value, bound[0] if bound else None, row.run_id)
                    )
    return [one for one in found.values() if one.points]


def crossings(policy_id: uuid.UUID, *, limit: int = 20) -> list[Crossing]:
    """Return the newest crossings of a policy."""
    return list(
        Crossing.objects.filter(policy_id=policy_id)
        .select_related("reading", "version")
        .order_by("-created_at")[:limit]
    )


def with_pauses(policies: QuerySet[Policy]) -> QuerySet[Policy]:
    """Add `pause_reason`, why training of each stands still, or ""."""
    open_ = TrainingPause.objects.filter(policy=OuterRef("pk"), resumed_at=None).values("reason")[:1]
    return policies.annotate(pause_reason=Coalesce(Subquery(open_), Value("")))
