"""Sessions: what was said, by which version, what judges made of it, and why it was or was not trained on."""

import uuid
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.adapters.models import Policy
from apps.conversations.api import TurnSerializer
from apps.conversations.models import Session, Turn, TurnKind
from apps.conversations.selectors import with_turn_counts
from apps.conversations.services.feedback import give_feedback
from apps.dashboard.lists import Listed, listed, page_with, searched, walked
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.saved import pages as saved
from apps.dashboard.saved.filters import SessionFilters
from apps.dashboard.timeline import readable_turns, shown, with_what_was_said
from apps.learning.lineage import Lineage, trajectory_staleness
from kernel.errors import AttuneError, InvalidInput
from kernel.rest.caller import Access

TURNS_SHOWN = 100
LONGEST_CORRECTION = 20_000


def _readable(place: Place) -> Any:
    """Return the sessions that a person may read: their own, or everybody's for who manages the tenant."""
    rows = Session.objects.select_related("user", "policy", "end_user")
    return rows if place.manages else rows.filter(user_id=place.user.pk)


def _listed(request: HttpRequest, place: Place, filters: SessionFilters) -> Listed[Session]:
    rows = filters.found(_readable(place))
    if not filters.searches:
        return listed(request, with_turn_counts(rows))
    return searched(request, rows, lambda some: with_turn_counts(filters.fitting(some)))


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(needs=Access.TALK)
def sessions(request: HttpRequest, place: Place) -> HttpResponse:
    """List sessions, newest first; save the filters that they are shown with."""
    policies = list(Policy.objects.order_by("name"))
    shelf = saved.shelf(request, place, policies)
    form: saved.NameForm | None = None
    if request.method == "POST":
        done = saved.save(request, place, shelf.filters)
        if isinstance(done, str):
            return redirect(done)
        form = done
    return place.show(
        request,
        "sessions",
        section="sessions",
        page=_listed(request, place, shelf.filters),
        shelf=shelf,
        saving=form,
    )


@require_safe
@tenant_page(needs=Access.TALK)
def session(request: HttpRequest, place: Place, session_id: uuid.UUID) -> HttpResponse:
    """Show one session as a line of turns."""
    rows = _readable(place).select_related("policy__live").defer("policy__live__metrics")
    found = rows.filter(pk=session_id).first()
    if found is None:
        raise Http404
    page = walked(request, with_what_was_said(Turn.objects.filter(session=found)), size=TURNS_SHOWN)
    return place.show(
        request,
        "session",
        section="sessions",
        session=found,
        age=_age_of(found),
        turns=[shown(place, turn) for turn in page.rows],
        page=page,
    )


def _age_of(session: Session) -> str:
    """Return how far a rollout lies behind the version that answers now, in words; "" for what is none."""
    if session.kind != TurnKind.ROLLOUT:
        return ""
    turns, began = trajectory_staleness(session.pk, Lineage(session.policy.live))
    if not turns:
        return ""
    if began is None:
        return "begun on another branch than the version that answers now"
    said = f"begun {_relation(began)} the version that answers now"
    ended = turns[-1]
    return said if ended is None or ended == began else f"{said}, ended {_relation(ended)} it"


def _relation(staleness: int) -> str:
    return f"{staleness} step{'' if staleness == 1 else 's'} before" if staleness else "with"


@require_safe
@tenant_page(needs=Access.TALK)
def turn(request: HttpRequest, place: Place, turn_id: uuid.UUID) -> HttpResponse:
    """Lead to a turn's place in its session."""
    del request
    found = readable_turns(place).filter(pk=turn_id).only("session_id", "created_at").first()
    if found is None:
        raise Http404
    return redirect(_at_turn(place, found))


def _at_turn(place: Place, turn: Turn) -> str:
    page = reverse("dashboard:session", kwargs={"tenant": place.tenant.slug, "session_id": turn.session_id})
    of_session = Turn.objects.filter(session_id=turn.session_id).only("created_at")
    return f"{page}{page_with(of_session, turn, size=TURNS_SHOWN)}#turn-{turn.pk}"


@require_safe
@tenant_page(needs=Access.TALK)
def turn_json(request: HttpRequest, place: Place, turn_id: uuid.UUID) -> HttpResponse:
    """Send a turn, whole, as JSON: the same as `/api/turns/<id>`."""
    del request
    found = readable_turns(place).select_related("version").filter(pk=turn_id).first()
    if found is None:
        raise Http404
    return JsonResponse(TurnSerializer(found).data, json_dumps_params={"ensure_ascii": False, "indent": 2})


@require_POST
@tenant_page(needs=Access.TALK)
def feedback(request: HttpRequest, place: Place, turn_id: uuid.UUID) -> HttpResponse:
    """Take a thumb or a correction; what came of it shows on the session's page."""
    turn = (
        Turn.objects.filter(pk=turn_id, session__user_id=place.user.pk)
        .only("session_id", "created_at")
        .first()
    )
    if turn is None:
        raise Http404
    score, correction = request.POST.get("score", ""), request.POST.get("correction", "")
    try:
        if len(correction) > LONGEST_CORRECTION:  # half of it would be learned as if it were all
            raise InvalidInput(f"What it should have been: at most {LONGEST_CORRECTION:,} characters.")
        if not score and not correction:
            raise InvalidInput("Type what it should have been, or say whether it was good or bad.")
        give_feedback(
            tenant_id=place.tenant.pk,
            user_id=place.user.pk,
            turn_id=turn_id,
            score=int(score) if score in {"-1", "0", "1"} else None,
            correction=correction,
        )
    except AttuneError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, "Noted. It outranks every judge.")
    return redirect(_at_turn(place, turn))
