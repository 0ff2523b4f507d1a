"""How the tenant's turns are judged, what that costs, and who takes no part."""

import uuid

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from apps.accounts.models import EndUser, Membership
from apps.adapters.models import Policy
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.settings.forms import RubricForm, TenantJudgeForm, complain
from apps.judging.models import JudgeSettings, JudgeSpend, OptOut, Rubric
from apps.judging.rules import rules_of_tenant
from apps.judging.services import change_judging, write_rubric
from apps.learning.opting_out import opt_in, opt_out
from kernel.errors import AttuneError
from kernel.refusals import InOurWords
from kernel.rest.caller import Access

DAYS = 7  # of what judging cost


class OptOutForm(InOurWords):
    """Whom to take out: a member by their address, or an end user as clients name them."""

    who = forms.CharField(max_length=254, label="Member's email, or end user as clients name them")


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page()
def judging(request: HttpRequest, place: Place) -> HttpResponse:
    """Show how turns are judged; change a part of it."""
    filled: dict[str, forms.Form] = {}
    if request.method == "POST":
        place.require(Access.MANAGE)
        act = _ACTS.get(request.POST.get("form", ""))
        if act is None:
            raise Http404
        again = redirect("dashboard:judging_settings", tenant=place.tenant.slug)
        try:
            wrong = act(request, place)
        except AttuneError as error:  # about no field of the page's forms
            messages.error(request, error.message)
            return again
        if wrong is None:
            messages.success(request, "Saved.")
            return again
        filled[request.POST["form"]] = wrong
    own = JudgeSettings.objects.filter(policy=None).first() or JudgeSettings()
    rubric = Rubric.objects.filter(policy=None).order_by("-number").first()
    shown: dict[str, forms.Form] = {
        "judging": TenantJudgeForm(
            initial={
                "votes": own.votes,
                "personal_data": own.personal_data,
                "daily_tokens": own.daily_tokens,
            }
        ),
        "rubric": RubricForm(initial={"text": rubric.text if rubric else ""}),
        "out": OptOutForm(),
        **filled,
    }
    outs = OptOut.objects.filter(ended_at=None).select_related("user", "end_user").order_by("-created_at")
    return place.show(
        request,
        "settings_judging",
        section="settings",
        tab="judging",
        forms=shown,
        rules=rules_of_tenant(place.tenant.pk),
        rubric=rubric,
        spent=JudgeSpend.objects.order_by("-day")[:DAYS],
        outs=outs[:200] if place.manages else [],
    )


def take_judging(form: forms.Form, place: Place, policy: Policy | None) -> forms.Form | None:
    """Change how turns of a policy (None: all of them) are judged; return the form where it is not valid."""
    if not form.is_valid():
        return form
    wanted = {name: value if value != "" else None for name, value in form.cleaned_data.items()}
    change_judging(tenant_id=place.tenant.pk, policy=policy, changes=wanted, actor=place.actor)
    return None


def take_rubric(form: RubricForm, place: Place, policy: Policy | None) -> forms.Form | None:
    """Write the rubric of a policy (None: of the tenant); return the form where it is not taken."""
    if not form.is_valid():
        return form
    try:
        write_rubric(
            tenant_id=place.tenant.pk, policy=policy, text=form.cleaned_data["text"], actor=place.actor
        )
    except AttuneError as error:
        complain(form, error)
        return form
    return None


def _out(request: HttpRequest, place: Place) -> forms.Form | None:
    form = OptOutForm(request.POST)
    if not form.is_valid():
        return form
    who = form.cleaned_data["who"]
    member = Membership.objects.filter(user__email__iexact=who).first()
    end_user = None if member else EndUser.objects.filter(external_id=who).first()
    if member is None and end_user is None:
        form.add_error("who", "Nobody here has this address or name.")
        return form
    opt_out(
        tenant_id=place.tenant.pk,
        actor=place.actor,
        user_id=member.user_id if member else None,
        end_user_id=end_user.pk if end_user else None,
    )
    return None


def _in(request: HttpRequest, place: Place) -> forms.Form | None:
    try:
        row = OptOut.objects.filter(pk=uuid.UUID(request.POST.get("id", "")), ended_at=None).first()
    except ValueError as error:
        raise Http404 from error
    if row is None:
        raise Http404
    opt_in(row=row, actor=place.actor)
    return None


def _judging(request: HttpRequest, place: Place) -> forms.Form | None:
    return take_judging(TenantJudgeForm(request.POST), place, None)


def _rubric(request: HttpRequest, place: Place) -> forms.Form | None:
    return take_rubric(RubricForm(request.POST), place, None)


_ACTS = {"judging": _judging, "rubric": _rubric, "out": _out, "in": _in}
