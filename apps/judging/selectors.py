"""Read what was made of a turn."""

import uuid
from dataclasses import dataclass, field

from django.db.models import Case, When

from apps.conversations.models import Feedback
from apps.judging.judge import MAX_HINTS, FoundHint, select_hints
from apps.judging.models import Hint, Judgement, JudgementSource, JudgementState


@dataclass(frozen=True, slots=True)
class Verdict:
    """What counts for a turn: reward 1, -1 or 0 (neutral), hints best first, and who said so."""

    reward: int
    hints: tuple[str, ...] = field(default=())
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
    corrections = [FoundHint(row.correction) for row in by_hand if row.correction.strip()]
    judgement = what_counts(turn_id)
    if not by_hand and judgement is None:
        return None
    found: list[FoundHint] = []
    if judgement is not None and score != 1:
        rows = Hint.objects.filter(judgement=judgement, accepted=True).order_by("number")
        found = [FoundHint(hint.text) for hint in rows]
    hints = tuple(hint.text for hint in select_hints((*corrections, *found)) if not hint.refused)[:MAX_HINTS]
    if score is not None:
        return Verdict(reward=score, hints=hints, source="human")
    if judgement is None:
        return Verdict(reward=0, hints=hints, source="human", reason="no score given")
    if judgement.state == JudgementState.FAILED:
        return Verdict(reward=0, hints=hints, reason=f"the judge failed: {judgement.reason}")
    return Verdict(
        reward=judgement.reward or 0, hints=hints, source=judgement.source, reason=judgement.reason
    )


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
