"""How long a policy keeps its sessions: what a person sets,
and the question that comes before anything goes at once."""

from django import forms
from django.http import HttpRequest, HttpResponse

from apps.adapters.models import Policy
from apps.dashboard.places import Place
from apps.dashboard.settings.forms import complain
from apps.governance.retention import would_take
from apps.learning.config import described
from apps.learning.configuring import configure
from kernel.errors import AttuneError
from kernel.refusals import InOurWords

_BOUNDS = described()["retention_days"]
_OF_THIS_FORM = {"csrfmiddlewaretoken", "confirmed"}


class RetentionForm(InOurWords):
    """After how many days without a turn sessions go, and the configuration that the person looked at."""

    number = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    retention_days = forms.IntegerField(
        min_value=_BOUNDS["minimum"],
        max_value=_BOUNDS["maximum"],
        required=False,
        label="Days without a turn; empty: kept for good",
    )


def change(request: HttpRequest, place: Place, policy: Policy) -> forms.Form | HttpResponse | None:
    """Take what the form says; return it where it is wrong, or the page that asks first."""
    form = RetentionForm(request.POST)
    if not form.is_valid():
        return form
    days = form.cleaned_data["retention_days"]
    if (question := ask_first(request, place, policy, days)) is not None:
        return question
    try:
        configure(
            policy_id=policy.pk,
            actor=place.actor,
            config={"retention_days": days},
            expected=form.cleaned_data["number"],
        )
    except AttuneError as error:
        complain(form, error)
        return form
    return None


def ask_first(request: HttpRequest, place: Place, policy: Policy, days: int | None) -> HttpResponse | None:
    """Return a page that says what keeping sessions for `days` only would delete now,
    and posts the same form again.

    None where that is nothing, or where the person has seen it for these days.
    """
    if request.POST.get("confirmed") == str(days):
        return None
    taken = would_take(policy, days)
    if taken is None:
        return None
    return place.show(
        request,
        "settings_retention",
        section="settings",
        policy=policy,
        days=days,
        taken=taken,
        again=[(name, value) for name, value in request.POST.items() if name not in _OF_THIS_FORM],
    )
