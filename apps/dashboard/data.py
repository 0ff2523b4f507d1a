"""The tenant's data: who did what, taking it along, having it gone, and what that means for the adapters."""

import uuid
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.models import EndUser, Membership
from apps.accounts.names import LONGEST_END_USER, is_name
from apps.adapters.models import Policy
from apps.conversations.models import Session
from apps.dashboard.actors import named
from apps.dashboard.audit_log import MOST_LINES, asked_of
from apps.dashboard.places import Place, tenant_page
from apps.governance.erasure.extent import extent_of
from apps.governance.erasure.lineage import known_of
from apps.governance.erasure.requests import request_erasure
from apps.governance.erasure.subjects import Meant
from apps.governance.export import jobs
from apps.governance.export.sending import send_export
from apps.governance.models import (
    OPEN_EXPORT_STATES,
    Erasure,
    ErasureState,
    Export,
    ExportState,
    Subject,
)
from kernel.errors import AttuneError
from kernel.rest.caller import Access

SHOWN = 10
"""Exports and deletions on the page, the newest of each."""
_TEXT = 200
_TYPED = 60


@require_safe
@tenant_page(needs=Access.MANAGE)
def data(request: HttpRequest, place: Place) -> HttpResponse:
    """Show exports, deletions and the audit log; the end user's name that nobody has is there to be mended."""
    asked = asked_of(request, place)
    page = asked.page(request)
    return place.show(
        request,
        "data",
        section="data",
        page=page,
        words=named(place, {name for entry in page.rows for name in (entry.actor, entry.target)}),
        chosen=asked.chosen,
        most=MOST_LINES,
        nobody=request.GET.get("nobody", "")[:_TEXT],
        members=Membership.objects.select_related("user").order_by("user__email"),
        **_work(),
    )


@require_safe
@tenant_page(needs=Access.MANAGE)
def progress(request: HttpRequest, place: Place) -> HttpResponse:
    """Show how far exports and deletions are: what the page asks for again while one is under way."""
    return place.show(request, "_data_progress", **_work())


def _work() -> dict[str, Any]:
    exports = list(Export.objects.order_by("-created_at", "-id")[:SHOWN])
    newest = Erasure.objects.order_by("-created_at", "-id")
    erasures = list(newest.exclude(subject=Subject.AGED)[:SHOWN])
    sweeps = list(newest.filter(subject=Subject.AGED)[:SHOWN])
    swept = {one.subject_id for one in sweeps if one.subject_id is not None}
    named: dict[Any, str] = dict(Policy.objects.filter(pk__in=swept).values_list("pk", "name"))
    return {
        "exports": exports,
        "erasures": [{"row": one, "what": _named(one), "done": _gone(one)} for one in erasures],
        "sweeps": [{"row": one, "policy": named.get(one.subject_id)} for one in sweeps],
        "exporting": any(one.state in OPEN_EXPORT_STATES for one in exports),
        "moving": any(one.state in OPEN_EXPORT_STATES for one in exports)
        or any(one.state == ErasureState.OPEN for one in (*erasures, *sweeps)),
        "ready": ExportState.READY,
        "now": timezone.now(),
    }


def _gone(erasure: Erasure) -> int:
    """Return how many turns are gone, for the bar: at most as many as there were."""
    return min(int(erasure.deleted.get("turn", 0)), erasure.turns_total)


def _named(erasure: Erasure) -> str:
    """Return what a deletion is of. It keeps no name: an id says which one it was to who knows it."""
    words = {
        Subject.SESSION: "Session",
        Subject.END_USER: "End user",
        Subject.MEMBER: "Member",
        Subject.EVERYTHING: "Everything that was said",
        Subject.AGED: f"Sessions older than {erasure.older_than_days} days, of the policy",
    }
    return " ".join(filter(None, (words[Subject(erasure.subject)], str(erasure.subject_id or "")[-8:])))


@require_POST
@tenant_page(needs=Access.MANAGE)
def export(request: HttpRequest, place: Place) -> HttpResponse:
    """Ask for an archive."""
    try:
        jobs.request_export(tenant_id=place.tenant.pk, actor=place.actor)
    except AttuneError as error:
        messages.error(request, error.message)
    return redirect("dashboard:data", tenant=place.tenant.slug)


@require_safe
@tenant_page(needs=Access.MANAGE)
def download_export(request: HttpRequest, place: Place, export_id: uuid.UUID) -> HttpResponseBase:
    """Send an archive."""
    found = Export.objects.filter(pk=export_id).first()
    if found is None:
        raise Http404
    try:
        sent = send_export(request, found, place.tenant)
    except AttuneError as error:
        messages.error(request, error.message)
        return redirect("dashboard:data", tenant=place.tenant.slug)
    jobs.record_download(export=found, actor=place.actor)
    return sent


@require_POST
@tenant_page(needs=Access.MANAGE)
def drop_export(request: HttpRequest, place: Place, export_id: uuid.UUID) -> HttpResponse:
    """End an export, or delete its file."""
    try:
        jobs.cancel_export(export_id=export_id, actor=place.actor)
    except AttuneError as error:
        if error.status == 404:
            raise Http404 from error
        messages.error(request, error.message)
    return redirect("dashboard:data", tenant=place.tenant.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(needs=Access.MANAGE)
def delete(request: HttpRequest, place: Place) -> HttpResponse:
    """Show how much a deletion would take and which versions learned from it;
    do it once that was confirmed."""
    asked = request.POST if request.method == "POST" else request.GET
    subject = asked.get("subject", "")
    if subject not in Subject.values or subject == Subject.AGED:
        raise Http404
    if subject == Subject.EVERYTHING:
        place.require(Access.OWN)
    meant, name = _meant(place, Subject(subject), asked.get("id", ""), asked.get("name", "").strip()[:_TEXT])
    if meant is None:
        messages.error(request, f"Nobody is called {name} in requests of this tenant.")
        page = reverse("dashboard:data", kwargs={"tenant": place.tenant.slug})
        if is_name(name, longest=LONGEST_END_USER):  # no address carries what could not be one
            page += f"?{urlencode({'nobody': name})}#delete"
        return redirect(page)
    typed = place.tenant.slug if meant.id is None else _typed(meant.id, name)
    wrong = asked.get("typed", "") != typed
    if request.method == "POST" and not wrong:
        erasure = request_erasure(tenant_id=place.tenant.pk, meant=meant, actor=place.actor)
        return redirect("dashboard:deletion", tenant=place.tenant.slug, erasure_id=erasure.pk)
    return place.show(
        request,
        "delete",
        section="data",
        meant=meant,
        name=name,
        typed=typed,
        wrong=wrong and request.method == "POST",
        taken=extent_of(meant),
    )


def _typed(key: uuid.UUID, name: str) -> str:
    """Return what is typed to confirm: the name,
    or the end of the id where there is none that everybody can type."""
    speaks = name != str(key) and name.isprintable() and name == " ".join(name.split())
    return name if speaks and len(name) <= _TYPED else str(key)[-8:]


def _meant(place: Place, subject: Subject, key: str, name: str) -> tuple[Meant | None, str]:
    """Return what a form names, and what it is called; None: nobody is called that.

    Raises Http404 for ids of others.
    """
    if subject == Subject.EVERYTHING:
        return Meant(subject), place.tenant.name
    if subject == Subject.END_USER and name:
        named = is_name(name, longest=LONGEST_END_USER)  # nobody is called otherwise
        person = EndUser.objects.filter(external_id=name).first() if named else None
        return (None if person is None else Meant(subject, person.pk)), name
    try:
        meant = Meant(subject, uuid.UUID(key))
    except ValueError as error:
        raise Http404 from error
    if subject == Subject.SESSION:
        found = Session.objects.filter(pk=meant.key).first()
        called = found.external_id or str(found.pk) if found else None
    elif subject == Subject.END_USER:
        called = EndUser.objects.filter(pk=meant.key).values_list("external_id", flat=True).first()
    else:
        called = Membership.objects.filter(user_id=meant.key).values_list("user__email", flat=True).first()
    if called is None:
        raise Http404
    return meant, called


@require_safe
@tenant_page(needs=Access.MANAGE)
def deletion(request: HttpRequest, place: Place, erasure_id: uuid.UUID) -> HttpResponse:
    """Show how far a deletion is, what it took, and which versions had learned from that."""
    found = Erasure.objects.filter(pk=erasure_id).first()
    if found is None:
        raise Http404
    samples = dict(found.learned.values_list("version_id", "samples"))
    return place.show(
        request,
        "deletion",
        section="data",
        erasure=found,
        words=named(place, [found.actor]),
        what=_named(found),
        done=_gone(found),
        moving=found.state == ErasureState.OPEN,
        deleted=[(_KINDS.get(kind, kind), count) for kind, count in sorted(found.deleted.items())],
        known=known_of(samples),
    )


_KINDS = {
    "turn": "turns",
    "session": "sessions",
    "sample": "samples",
    "judgement": "judgements",
    "vote": "votes",
    "hint": "hints",
    "feedback": "feedback",
    "evidence": "evidence of wishes",
    "preference": "wishes",
    "lesson": "lessons",
    "enduser": "end users",
    "trajectory": "attempts",
    "optout": "ended opt-outs",
    "export": "archives",
}
