"""What the sessions' list may be narrowed to.

The page, a saved view and REST read filters with this one form.
"""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from apps.adapters.models import Policy
from apps.conversations.models import Feedback, Session, TurnKind
from apps.dashboard.models import SavedView
from apps.learning.models import Sample
from kernel.refusals import InOurWords

LONGEST_PERSON = 200
JUDGED = {"bad": "a reply judged bad", "good": "a reply judged good"}
WITHIN = {"1d": "in the last 24 hours", "7d": "in the last 7 days", "30d": "in the last 30 days"}
"""By when a session began, from now back: the same view is about today each day."""
NAMES = ("policy", "kind", "judged", "within", "person")
_SEARCHED = {"kind", "judged"}
_DAYS = {"1d": 1, "7d": 7, "30d": 30}


class SessionFilters(InOurWords):
    """Filters of the sessions' list; one that is left empty narrows nothing."""

    policy = forms.ChoiceField(required=False, label="Policy")
    kind = forms.ChoiceField(
        required=False, label="Kind", choices=[("", "all"), *((value, value) for value in TurnKind.values)]
    )
    judged = forms.ChoiceField(required=False, label="With", choices=[("", "any"), *JUDGED.items()])
    within = forms.ChoiceField(required=False, label="Began", choices=[("", "at any time"), *WITHIN.items()])
    person = forms.CharField(required=False, label="End user", max_length=LONGEST_PERSON)

    def __init__(self, given: Mapping[str, Any], policies: Sequence[Policy]) -> None:
        super().__init__({name: given.get(name, "") for name in NAMES})
        choices = [("", "all"), *((str(one.pk), one.name) for one in policies)]
        self.fields["policy"].choices = choices  # type: ignore[attr-defined]

    def chosen(self) -> dict[str, str]:
        """Return what narrows the list, by name. The form must be valid."""
        return {name: value for name, value in self.cleaned_data.items() if value}

    @property
    def searches(self) -> bool:
        """Whether a filter is chosen that has no index: see `fitting`. The form must be valid."""
        return not _SEARCHED.isdisjoint(self.chosen())

    def fitting(self, sessions: QuerySet[Session]) -> QuerySet[Session]:
        """Return the sessions that fit the filters which each row is looked at for.

        The form must be valid.
        """
        chosen = self.chosen()
        if kind := chosen.get("kind"):
            sessions = sessions.filter(kind=kind)
        if judged := chosen.get("judged"):
            sessions = sessions.filter(_judged(judged))
        return sessions

    def found(self, sessions: QuerySet[Session]) -> QuerySet[Session]:
        """Return the sessions that fit the filters which an index answers. The form must be valid."""
        chosen = self.chosen()
        if policy := chosen.get("policy"):
            sessions = sessions.filter(policy_id=uuid.UUID(policy))
        if within := chosen.get("within"):
            sessions = sessions.filter(created_at__gte=timezone.now() - dt.timedelta(days=_DAYS[within]))
        if person := chosen.get("person"):
            sessions = sessions.filter(end_user__external_id=person)
        return sessions


@dataclass(frozen=True, slots=True)
class Opened:
    """A saved view's filters as the form takes them now."""

    filters: SessionFilters
    """Valid."""
    lost: list[str]
    """Labels of the filters that mean nothing any more and were left out."""


def opened(view: SavedView, policies: Sequence[Policy]) -> Opened:
    """Return a view's filters; what is stored is read as what a person types,
    and what no longer fits is left out."""
    stored = view.filters if isinstance(view.filters, dict) else {}
    given = {name: value for name, value in stored.items() if isinstance(value, str)}
    if view.end_user is not None:
        given["person"] = view.end_user.external_id
    form = SessionFilters(given, policies)
    if form.is_valid():
        return Opened(form, [])
    lost = [name for name in NAMES if name in form.errors]
    kept = SessionFilters({name: value for name, value in given.items() if name not in lost}, policies)
    kept.full_clean()
    return Opened(kept, [str(form.fields[name].label) for name in lost])


def _judged(judged: str) -> Any:
    """Return what is true of sessions with a reply that a judge or a person called so."""
    sign = "lt" if judged == "bad" else "gt"
    return Exists(Sample.objects.filter(turn__session=OuterRef("pk"), **{f"reward__{sign}": 0})) | Exists(
        Feedback.objects.filter(turn__session=OuterRef("pk"), **{f"score__{sign}": 0})
    )
