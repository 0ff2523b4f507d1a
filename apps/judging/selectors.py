"""Read what was made of a turn."""

import uuid
from dataclasses import dataclass, field
from functools import partial

from django.db.models import Case, When

from apps.conversations.models import Feedback
from apps.judging.judge import MAX_HINTS, FoundHint, select_hints
from apps.judging.models import Hint, Judgement, JudgementSource, JudgementState


@dataclass(frozen=True, slots=True)
class Verdict:
    """What counts for a turn: reward 1, -1 or 0 (neutral), hints best first, and who said so."""

    reward: int
    hints: tuple[str, ...] = field(default=())
    wishes: tuple[str, ...] = field(default=())
    """Those of the hints that rest on what the person said, and on nothing else."""
    source: str = "judge"
    reason: str = ""


def verdict(turn_id: uuid.UUID) -> Verdict | None:
    """Return what counts for a turn, or None while nobody has said anything.

    A person outranks every judge: the latest score given by hand is the reward, corrections come first
    among the hints, and praise by hand silences the judge's hints. Without a score by hand an operator's
    override counts, then the newest verdict of a judge; a dead letter counts as neutral where there is
    nothing else.
    """
    by_hand = list(Feedback.objects.filter(turn_id=turn_id).order_by("-created_at"))
    score = next((row.score for row in by_hand if row.score is not None), None)
    corrections = [FoundHint(row.correction, by_user=True) for row in by_hand if row.correction.strip()]
    judgement = what_counts(turn_id)
    if not by_hand and judgement is None:
        return None
    found: list[FoundHint] = []
    if judgement is not None and score != 1:
        rows = Hint.objects.filter(judgement=judgement, accepted=True).order_by("number")
        found = [FoundHint(hint.text, by_user=hint.by_user) for hint in rows]
    kept = [hint for hint in select_hints((*corrections, *found)) if not hint.refused][:MAX_HINTS]
    says = partial(
        Verdict,
        hints=tuple(hint.text for hint in kept),
        wishes=tuple(hint.text for hint in kept if hint.by_user),
    )
    if score is not None:
        return says(reward=score, source="human")
    if judgement is None:
        return says(reward=0, source="human", reason="no score given")
    if judgement.state == JudgementState.FAILED:
        return says(reward=0, reason=f"the judge failed: {judgement.reason}")
    return says(reward=judgement.reward or 0, source=judgement.source, reason=judgement.reason)


def what_counts(turn_id: uuid.UUID) -> Judgement | None:
    """Return the judgement of a turn that counts now:
    override before judge, settled before dead, newest first."""
    over = Judgement.objects.filter(turn_id=turn_id).exclude(state=JudgementState.PENDING)
    return over.order_by(
        Case(When(source=JudgementSource.OVERRIDE, then=0), default=1),
        Case(When(state=JudgementState.SETTLED, then=0), default=1),
        "-created_at",
        "-id",
    ).first()
