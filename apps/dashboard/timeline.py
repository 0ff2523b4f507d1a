"""A session's turns: what each added, what was said of it, and what is still on its way."""

import datetime as dt
import hashlib
import uuid
from typing import Any

from django.conf import settings
from django.db.models import Prefetch, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from apps.conversations.models import Feedback, Turn, TurnState
from apps.dashboard.places import Place, tenant_page
from apps.judging.models import Judgement, JudgementState
from apps.judging.reasons import Reason, reason_of
from apps.learning.models import Sample, SampleState
from kernel.rest.caller import Access

PATIENCE = dt.timedelta(minutes=2)
"""How long after the last word a page asks what came of it;
a judge that takes longer shows at the next look."""
_MAY_CHANGE = (None, Reason.NO_NEXT_STATE, Reason.NO_SIGNAL)


def readable_turns(place: Place) -> QuerySet[Turn]:
    """Return the turns that a person may read: their own, or everybody's for who manages the tenant."""
    rows = Turn.objects.all()
    return rows if place.manages else rows.filter(session__user_id=place.user.pk)


def with_what_was_said(turns: QuerySet[Turn]) -> QuerySet[Turn]:
    """Return turns with their verdicts, feedback and samples, without their tokens."""
    return (
        turns.select_related("version", "session", "sample__run__version")
        .defer("prompt_ids", "output_ids", "output_logprobs", "template_kwargs")
        .prefetch_related(
            Prefetch(
                "judgements", Judgement.objects.order_by("-created_at").prefetch_related("votes", "hints")
            ),
            Prefetch("feedback", Feedback.objects.order_by("-created_at")),
        )
    )


def shown(place: Place, turn: Turn) -> dict[str, Any]:
    """Return a turn as the page shows it to a person: only what it added to the one before."""
    asked = turn.messages
    if turn.parent_id is not None:
        replies = [number for number, one in enumerate(asked) if one.get("role") == "assistant"]
        asked = asked[replies[-1] + 1 :] if replies else asked
    known = {"turn": turn, "asked": asked, "sample": _sample_of(turn), "awaited": awaited(turn)}
    known["takes_a_word"] = takes_a_word(place, turn)
    return {**known, "seen": _mark(known)}


def takes_a_word(place: Place, turn: Turn) -> bool:
    """Whether the person may give the turn a thumb or a correction:
    it is theirs, whole and of the conversation."""
    return turn.session.user_id == place.user.pk and turn.state == TurnState.COMPLETE and not turn.side


def awaited(turn: Turn) -> str:
    """Return what a page that shows the turn waits for, in a word; "" for nothing.

    `turn` comes from `with_what_was_said`.
    """
    longest = dt.timedelta(seconds=settings.ENGINE_TIMEOUT_S) + PATIENCE
    if turn.is_open and turn.created_at > timezone.now() - longest:
        return "answering"
    since = [judgement.created_at for judgement in turn.judgements.all() if _is_pending(judgement)]
    since += [said.created_at for said in turn.feedback.all()[:1] if _is_new(turn, said.score)]
    if turn.next_state_at is not None and not turn.side and _sample_of(turn) is None:
        since.append(turn.next_state_at)
    return "judging" if since and max(since) > timezone.now() - PATIENCE else ""


def _is_pending(judgement: Judgement) -> bool:
    return judgement.state == JudgementState.PENDING


def _is_new(turn: Turn, score: int | None) -> bool:
    """Whether the newest word by hand is not in the turn's sample yet, and may still come into it."""
    sample = _sample_of(turn)
    if sample is None:
        return not turn.side
    follows = sample.state in {SampleState.READY, SampleState.INELIGIBLE}
    return follows and reason_of(sample.reason) in _MAY_CHANGE and score not in {None, sample.reward}


def _sample_of(turn: Turn) -> Sample | None:
    found: Sample | None = getattr(turn, "sample", None)
    return found


@require_safe
@tenant_page(needs=Access.TALK)
def so_far(request: HttpRequest, place: Place, turn_id: uuid.UUID) -> HttpResponse:
    """Send what is known of a turn, for the page that shows it; 204 where that is what it has (`seen`).

    A page that has no form for a word by hand says so (`wordless`) and is sent that too, once the turn takes
    one. One that has it keeps it: somebody may be writing there.
    """
    turn = with_what_was_said(readable_turns(place).filter(pk=turn_id)).first()
    if turn is None:
        raise Http404
    known = shown(place, turn)
    if request.GET.get("seen") == known["seen"]:
        return HttpResponse(status=204)
    late = known["takes_a_word"] and "wordless" in request.GET
    return place.show(request, "_turn_so_far", one=known, form_follows=late)


def _mark(known: dict[str, Any]) -> str:
    """Return a short hash of what a page shows of a turn: another one where that has changed."""
    turn: Turn = known["turn"]
    sample: Sample | None = known["sample"]
    said = [
        known["awaited"],
        turn.state,
        turn.next_state is None,
        *((one.pk, one.state, one.reward, one.reason) for one in turn.judgements.all()),
        *(one.pk for one in turn.feedback.all()),
        sample and (sample.state, sample.reason, sample.reward, sample.run_id),
    ]
    return hashlib.sha256(repr(said).encode()).hexdigest()[:16]
