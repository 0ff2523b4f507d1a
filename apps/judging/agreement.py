"""How far judges agree with the people who were there: what calibrates a judge."""

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import OuterRef, Subquery

from apps.conversations.models import Feedback
from apps.judging.models import Judgement, JudgementSource, JudgementState

_READ = ("judge", "prompt_version", "votes_asked", "temperature", "reward", "rubric__number")

Pairs = Mapping[tuple[int, int], int]


@dataclass(frozen=True, slots=True)
class Agreement:
    """One judge version against the people who gave a score to the same turns."""

    judge: str
    prompt_version: str
    rubric: int | None
    """Its number; None: the built-in one."""
    votes: int
    temperature: float
    pairs: Pairs
    """(person's score, judge's reward) -> turns."""

    @property
    def turns(self) -> int:
        """Turns that both have judged."""
        return sum(self.pairs.values())

    @property
    def agreed(self) -> float:
        """Share of the turns on which they say the same."""
        return agreed(self.pairs)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa; None where chance alone explains everything."""
        return kappa(self.pairs)


def agreed(pairs: Pairs) -> float:
    """Return the share of equal pairs, in [0, 1]; 0 without any pair."""
    total = sum(pairs.values())
    return sum(n for (person, judge), n in pairs.items() if person == judge) / total if total else 0.0


def kappa(pairs: Pairs) -> float | None:
    """Return Cohen's kappa, (p_o - p_e) / (1 - p_e), in [-1, 1] (Cohen 1960, doi 10.1177/001316446002000104).

    None without pairs, or where both always say the same one thing: then chance explains it all.
    """
    total = sum(pairs.values())
    if not total:
        return None
    people: Counter[int] = Counter()
    judges: Counter[int] = Counter()
    for (person, judge), n in pairs.items():
        people[person] += n
        judges[judge] += n
    # in whole numbers: a chance of exactly 1 must not become 0.999…
    by_chance = sum(people[score] * judges[score] for score in people)
    if by_chance == total * total:
        return None
    expected = by_chance / (total * total)
    return (agreed(pairs) - expected) / (1 - expected)


def agreement(*, policy_id: uuid.UUID | None = None, since: dt.datetime | None = None) -> list[Agreement]:
    """Return every judge version in scope against people's latest scores, most turns first."""
    latest = Feedback.objects.filter(turn=OuterRef("turn"), score__isnull=False).order_by(
        "-created_at", "-id"
    )
    rows = (
        Judgement.objects.filter(source=JudgementSource.JUDGE, state=JudgementState.SETTLED)
        .annotate(person=Subquery(latest.values("score")[:1]))
        .filter(person__isnull=False)
    )
    if policy_id is not None:
        rows = rows.filter(turn__policy_id=policy_id)
    if since is not None:
        rows = rows.filter(created_at__gte=since)
    versions: dict[tuple[str, str, int | None, int, float], Counter[tuple[int, int]]] = {}
    for judgement in rows.select_related("rubric").only(*_READ):
        version = (
            judgement.judge,
            judgement.prompt_version,
            judgement.rubric.number if judgement.rubric is not None else None,
            judgement.votes_asked,
            judgement.temperature,
        )
        versions.setdefault(version, Counter())[(judgement.person, judgement.reward or 0)] += 1
    found = [Agreement(*version, pairs=dict(pairs)) for version, pairs in versions.items()]
    return sorted(found, key=lambda one: (-one.turns, one.judge, one.prompt_version, one.rubric or 0))
