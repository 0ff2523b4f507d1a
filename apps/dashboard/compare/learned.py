"""What runs were given to learn from."""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Avg, Count, Max, Min, Q
from django.utils.html import format_html

from apps.dashboard.compare.rows import Line, counted, kept, measured
from apps.dashboard.templatetags.pages import moment
from apps.learning.models import Sample


@dataclass(slots=True)
class Learned:
    """The samples of one run."""

    by_source: dict[str, int] = field(default_factory=dict)
    since: dt.datetime | None = None
    """When the oldest of their turns was asked for."""
    until: dt.datetime | None = None
    reward: float | None = None
    """Their mean reward."""
    staleness: float | None = None
    """Mean steps along the lineage from the version that answered."""
    down_weighted: int = 0

    @property
    def samples(self) -> int:
        """How many there are."""
        return sum(self.by_source.values())

    @property
    def sources(self) -> str:
        """How many of which kind, in words."""
        return ", ".join(f"{n} {source}" for source, n in sorted(self.by_source.items())) or "0"


def learned_by(run_ids: Sequence[uuid.UUID]) -> Mapping[uuid.UUID, Learned]:
    """Return what each run was given. Two queries."""
    found = {run_id: Learned() for run_id in run_ids}
    rows = Sample.objects.filter(run_id__in=run_ids).order_by()
    for run_id, source, n in rows.values_list("run_id", "source").annotate(n=Count("pk")):
        if run_id is not None:
            found[run_id].by_source[source] = n
    sums = rows.values("run_id").annotate(
        since=Min("turn__created_at"),
        until=Max("turn__created_at"),
        mean=Avg("reward"),
        age=Avg("staleness"),
        lighter=Count("pk", filter=Q(weight__lt=1.0)),
    )
    for row in sums:
        one = found[row["run_id"]]
        one.since, one.until = row["since"], row["until"]
        one.reward, one.staleness, one.down_weighted = row["mean"], row["age"], row["lighter"]
    return found


def learned_lines(one: Learned, other: Learned) -> Sequence[Line]:
    """Return both side by side."""
    change = other.samples - one.samples
    return kept(
        [
            Line("Turns", one.sources, other.sources, counted(change) if change else ""),
            Line("Asked between", _window(one), _window(other)),
            measured("Their mean reward", one.reward, other.reward),
            measured("Mean staleness", one.staleness, other.staleness, unit="steps"),
            measured("Counted less, being stale", one.down_weighted, other.down_weighted),
        ]
    )


def _window(one: Learned) -> str:
    return "-" if one.since is None else format_html("{} to {}", moment(one.since), moment(one.until))
