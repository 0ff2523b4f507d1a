"""Memory: what people asked for, where they said it, what became of it; and changing it by hand."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Prefetch, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from apps.adapters.models import Policy
from apps.dashboard.lists import chosen_id, chosen_word, listed
from apps.dashboard.places import Place, tenant_page
from apps.memory import services
from apps.memory.models import KEPT, Evidence, MemorySetting, Preference, PreferenceState
from apps.memory.prompt import cost_of
from apps.memory.selectors import tokens_saved, with_session_counts, with_words
from apps.memory.text import LONGEST
from kernel.errors import AttuneError
from kernel.rest.caller import Access

STATES = {
    PreferenceState.ACTIVE.value: "told",
    PreferenceState.LEARNED.value: "learned",
    PreferenceState.SUPERSEDED.value: "replaced",
}
EVIDENCE_SHOWN = 50
_LONGEST_PERSON = 254
_LONGEST_QUERY = 1000


@dataclass(frozen=True, slots=True)
class Entry:
    """A preference with its words, as pages show it."""

    row: Any
    in_prompt: bool
    """Whether its policy tells its model anything at all."""
    evidence: Sequence[Evidence]
    """Newest first, some of them."""

    @property
    def became(self) -> tuple[str, str]:
        """What became of it: a word, and the reason."""
        row = self.row
        if row.state == PreferenceState.LEARNED:
            return "learned", row.reason
        if row.state == PreferenceState.SUPERSEDED:
            return "replaced", row.reason
        if not row.words:
            return "gone", "the session that said it was deleted"
        if not self.in_prompt:
            return "not told", "the policy tells its model nothing of what people asked for"
        if not (row.general or row.pinned or row.own_words or row.session_count > 1):
            return "waits", "it may be about one answer only: told once a second session says it"
        return "in the prompt", row.reason

    @property
    def cost(self) -> int:
        """Tokens of each prompt that it takes to tell it."""
        return cost_of(self.row.words) if self.row.words else 0

    @property
    def saved(self) -> int:
        """Tokens of prompts that not telling it has saved. One query."""
        return tokens_saved(self.row)


def _readable(place: Place) -> QuerySet[Preference]:
    """Return the preferences that a person may see and change:
    their own, or everybody's for who manages the tenant."""
    rows = Preference.objects.filter(state__in=KEPT)
    return rows if place.manages else rows.filter(user_id=place.user.pk)


def _whose(place: Place) -> uuid.UUID | None:
    return None if place.manages else place.user.pk


def _entries(rows: Sequence[Preference], *, evidence: int) -> list[Entry]:
    """Return rows with their words and the newest evidence of each, in their order. Four queries."""
    found = {
        row.pk: row
        for row in with_session_counts(with_words(Preference.objects.filter(pk__in=[row.pk for row in rows])))
        .select_related("policy", "user", "end_user", "held_by", "superseded_by")
        .prefetch_related(
            Prefetch(
                "evidence",
                Evidence.objects.select_related("turn")
                .only("preference_id", "words", "created_at", "turn__session_id")
                .order_by("-created_at", "-id")[:evidence],
                to_attr="shown",
            )
        )
    }
    silent = set(MemorySetting.objects.filter(in_prompt=False).values_list("policy_id", flat=True))
    return [
        Entry(one, one.policy_id not in silent, one.shown)
        for row in rows
        if (one := found.get(row.pk)) is not None
    ]


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(needs=Access.TALK)
def memory(request: HttpRequest, place: Place) -> HttpResponse:
    """List what people asked for, newest first; keep what is typed here."""
    if request.method == "POST" and (done := _add(request, place)) is not None:
        return done
    policy, state = chosen_id(request, "policy"), chosen_word(request, "state", list(STATES))
    person = request.GET.get("person", "").strip()[:_LONGEST_PERSON]
    rows = _readable(place)
    if policy is not None:
        rows = rows.filter(policy_id=policy)
    if state:
        rows = rows.filter(state=state)
    if person:
        rows = rows.filter(Q(user__email=person, end_user=None) | Q(end_user__external_id=person))
    page = listed(request, rows)
    return place.show(
        request,
        "memory",
        section="memory",
        entries=_entries(page.rows, evidence=1),
        page=page,
        policies=Policy.objects.order_by("name"),
        states=STATES.items(),
        longest=LONGEST,
        typed=request.POST,
        query=request.GET.urlencode(),
        chosen={"policy": str(policy or ""), "state": state, "person": person},
    )


def _add(request: HttpRequest, place: Place) -> HttpResponse | None:
    """Keep what was typed; None where that is refused: the page says why, and has it still."""
    try:
        policy_id = uuid.UUID(request.POST.get("policy", ""))
    except ValueError as error:
        raise Http404 from error
    try:
        services.add_preference(
            policy_id=policy_id,
            user_id=place.user.pk,
            end_user=None,
            text=request.POST.get("text", ""),
            pinned=request.POST.get("pinned") == "on",
            actor=place.actor,
        )
    except AttuneError as error:
        if error.status == 404:
            raise Http404 from error
        messages.error(request, error.message)
        return None
    messages.success(request, "Kept. Your next request is told of it.")
    return redirect("dashboard:memory", tenant=place.tenant.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(needs=Access.TALK)
def preference(request: HttpRequest, place: Place, preference_id: uuid.UUID) -> HttpResponse:
    """Show one preference with where it was said; change its words, pin it or forget it."""
    found = _readable(place).filter(pk=preference_id).first()
    if found is None:
        raise Http404
    retyped = None
    if request.method == "POST":
        if (done := _change(request, place, preference_id)) is not None:
            return done
        retyped = request.POST.get("text", "")
    entries = _entries([found], evidence=EVIDENCE_SHOWN)
    return place.show(
        request,
        "preference",
        section="memory",
        entry=entries[0],
        replaces=_entries(list(found.supersedes.order_by("-changed_at")[:5]), evidence=0),
        by=_entries([found.superseded_by] if found.superseded_by else [], evidence=0),
        longest=LONGEST,
        retyped=retyped,
    )


def _change(request: HttpRequest, place: Place, preference_id: uuid.UUID) -> HttpResponse | None:
    """Do what was asked; None where words are refused: the preference's page says why, and has them still."""
    wish = request.POST.get("wish", "")
    try:
        if wish == "delete":
            services.delete_preference(preference_id=preference_id, user_id=_whose(place), actor=place.actor)
            messages.success(request, "Forgotten: no prompt is told of it, and its words are gone.")
        elif wish in {"words", "pin", "unpin"}:
            services.edit_preference(
                preference_id=preference_id,
                user_id=_whose(place),
                text=request.POST.get("text", "") if wish == "words" else None,
                pinned=None if wish == "words" else wish == "pin",
                actor=place.actor,
            )
            messages.success(
                request, {"words": "Changed.", "pin": "Pinned.", "unpin": "No longer pinned."}[wish]
            )
        else:
            raise Http404
    except AttuneError as error:
        if error.status == 404:
            raise Http404 from error
        messages.error(request, error.message)
        if wish == "words":
            return None
    here = reverse("dashboard:memory", kwargs={"tenant": place.tenant.slug})
    if "query" in request.POST:
        return redirect(f"{here}?{request.POST['query'][:_LONGEST_QUERY]}")
    return redirect(here if wish == "delete" else request.path)
