"""Gauge 2, rollout ↔ deploy: how trained turns were sampled against what is served;
what people talk of week on week."""

import datetime as dt
import uuid
from collections import Counter, defaultdict
from typing import Any

from django.db.models.fields.json import KeyTransform

from apps.adapters.models import Policy
from apps.conversations.models import Turn, TurnKind, TurnState
from apps.learning.drift.measures import known, mean, total_variation
from apps.learning.drift.topics import Shift, shift, topics_of
from apps.learning.eligibility import distorted_by, sampling_temperature
from apps.learning.models import SampleState

WEEK = dt.timedelta(days=7)
MOST_TURNS = 20_000  # of a window, the newest
LEAST_TURNS = 10  # of either side
TAUGHT = (SampleState.READY, SampleState.CLAIMED, SampleState.CONSUMED)


def measure_sampling(
    policy: Policy, *, since: dt.datetime, until: dt.datetime
) -> tuple[dict[str, float], dict[str, Any]]:
    """Compare the sampling of turns that teach (live, rollout,
    shadow) with that of the live turns of the window.

    Side turns are not among them: a client's own titles and summaries are sampled as suits it, and teach
    nothing.
    """
    rows = Turn.objects.filter(policy=policy, created_at__gte=since, created_at__lt=until)
    served = _samplings(rows.filter(kind=TurnKind.LIVE, side=False, state=TurnState.COMPLETE))
    taught = _samplings(rows.filter(sample__state__in=TAUGHT))
    detail = {"served": _settings(served, policy), "taught": _settings(taught, policy)}
    if min(len(served), len(taught)) < LEAST_TURNS:
        return {}, detail
    hot_served, hot_taught = (
        mean([sampling_temperature(one, policy.temperature) for one in side]) for side in (served, taught)
    )
    assert hot_served is not None  # noqa: S101 - both sides have turns
    assert hot_taught is not None  # noqa: S101
    return known(
        {
            "sampling_shift": total_variation(detail["served"], detail["taught"]),
            "temperature_gap": abs(hot_served - hot_taught),
            "temperature_served": hot_served,
            "temperature_taught": hot_taught,
        }
    ), detail


def measure_topics(policy: Policy, *, until: dt.datetime) -> tuple[dict[str, float], dict[str, Any]]:
    """Compare what people said in the week before `until` with the week before that."""
    before = _conversations(policy, until - 2 * WEEK, until - WEEK)
    now = _conversations(policy, until - WEEK, until)
    found: Shift | None = shift(before, now, seed=policy.pk.int ^ int(until.timestamp()))
    detail = {"conversations": len(now), "conversations_before": len(before)}
    if found is None:
        return {}, detail
    return {
        "topic_shift": found.divergence,
        "topic_floor": found.floor,
        "topic_excess": found.excess,
    }, detail


def setting_of(sampling: dict[str, Any], default: float) -> str:
    """Return how a turn was sampled, in a word: its temperature and whatever else shaped the distribution."""
    parts = [f"T={sampling_temperature(sampling, default):g}"]
    parts += [f"{name}={sampling[name]}"[:60] for name in distorted_by(sampling)]
    return " ".join(parts)


def _samplings(turns: Any) -> list[dict[str, Any]]:
    return list(turns.order_by("-created_at").values_list("sampling", flat=True)[:MOST_TURNS])


def _settings(samplings: list[dict[str, Any]], policy: Policy) -> dict[str, int]:
    return dict(Counter(setting_of(one, policy.temperature) for one in samplings).most_common(50))


def _conversations(policy: Policy, since: dt.datetime, until: dt.datetime) -> list[Counter[int]]:
    """Return the topics of each conversation of the window: of what the person said, not of the replies."""
    rows = (
        Turn.objects.filter(
            policy=policy,
            kind=TurnKind.LIVE,
            side=False,
            state=TurnState.COMPLETE,
            created_at__gte=since,
            created_at__lt=until,
        )
        .annotate(last=KeyTransform("-1", "messages"))
        .order_by("-created_at")
        .values_list("session_id", "last")[:MOST_TURNS]
    )
    found: dict[uuid.UUID, Counter[int]] = defaultdict(Counter)
    for session_id, last in rows:
        if isinstance(last, dict) and last.get("role") == "user":
            found[session_id].update(topics_of(_text(last.get("content"))))
    return list(found.values())


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
