"""One policy's settings: whether and how it learns, by which rubric, and what that was before."""

import uuid
from collections.abc import Callable
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from apps.adapters.models import Policy, PolicyConfig
from apps.adapters.services import change_policy
from apps.dashboard.actors import named
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.settings import memory, retention
from apps.dashboard.settings.forms import AnswerForm, ConfigForm, JudgeForm, RubricForm, complain
from apps.dashboard.settings.judging import take_judging, take_rubric
from apps.governance.retention import outlook
from apps.judging.models import JudgeSettings, Rubric
from apps.judging.rules import active_rubric, rules_of
from apps.learning.config import resolve
from apps.learning.configuring import OPERATORS, changes, configure
from apps.learning.presets import PRESETS, preset_of
from apps.memory.selectors import setting_of
from apps.memory.use import use_of
from kernel.errors import AttuneError, InvalidInput
from kernel.rest.caller import Access

SHOWN = 20  # configurations on the page
LONGEST_NUMBER = 9  # digits of a configuration's number: within the column's 32 bits


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page()
def policy(request: HttpRequest, place: Place, policy_id: uuid.UUID) -> HttpResponse:
    """Show one policy's settings; change one of them."""
    found = Policy.objects.filter(pk=policy_id).first()
    if found is None:
        raise Http404
    filled: dict[str, forms.Form] = {}
    if request.method == "POST":
        place.require(Access.MANAGE)
        act = _ACTS.get(request.POST.get("form", ""))
        if act is None:
            raise Http404
        again = redirect("dashboard:policy_settings", tenant=place.tenant.slug, policy_id=policy_id)
        try:
            wrong = act(request, place, found)
        except AttuneError as error:  # about no field of the page's forms
            messages.error(request, error.message)
            return again
        if isinstance(wrong, HttpResponse):
            return wrong
        if wrong is None:
            messages.success(request, "Saved.")
            return again
        filled[request.POST["form"]] = wrong
        found.refresh_from_db()
    return _page(request, place, found, filled)


def _page(request: HttpRequest, place: Place, found: Policy, filled: dict[str, forms.Form]) -> HttpResponse:
    rows = list(PolicyConfig.objects.filter(policy=found).order_by("-number")[: SHOWN + 1])
    rubric, rules = active_rubric(found), rules_of(found)
    own = JudgeSettings.objects.filter(policy=found).first() or JudgeSettings()
    remembers = setting_of(found.pk)
    now, aging = _resolved(found), outlook(found)
    rubrics = list(Rubric.objects.filter(policy=found).order_by("-number")[:SHOWN])
    shown: dict[str, forms.Form] = {
        "answer": AnswerForm(
            initial={"temperature": found.temperature, "training_enabled": found.training_enabled}
        ),
        "config": ConfigForm(initial={**now, "number": found.config_number}),
        "retention": retention.RetentionForm(
            initial={"retention_days": now["retention_days"], "number": found.config_number}
        ),
        "memory": memory.filled(remembers),
        "rubric": RubricForm(initial={"text": rubric.text if rubric and rubric.policy_id else ""}),
        "judging": JudgeForm(initial={"votes": own.votes, "personal_data": own.personal_data}),
        **filled,
    }
    return place.show(
        request,
        "settings_policy",
        section="settings",
        tab="",
        policy=found,
        forms=shown,
        presets=PRESETS,
        preset=preset_named(found),
        history=_history(rows),
        rubric=rubric,
        rubrics=rubrics,
        words=named(place, [*(row.actor for row in rows), *(one.actor for one in rubrics)]),
        rules=rules,
        use=use_of(remembers),
        shadow_offered=settings.SHADOW_ENABLED,
        outlook=aging,
        later=aging.at > timezone.now(),
    )


def _history(rows: list[PolicyConfig]) -> list[tuple[PolicyConfig, list[tuple[str, str, str]]]]:
    """Return rows, newest first, each with (setting, before,
    after) of what changed from the one before it."""
    befores = [row.overrides for row in rows[1:]] + ([{}] if len(rows) <= SHOWN else [])
    return [
        (
            row,
            [
                (name, _said(pair, "before"), _said(pair, "after"))
                for name, pair in changes(before, row.overrides).items()
            ],
        )
        for row, before in zip(rows, befores, strict=False)
    ]


def _said(pair: dict[str, Any], side: str) -> str:
    if side not in pair:
        return "the platform's"
    value = pair[side]
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _resolved(found: Policy) -> dict[str, Any]:
    """Return every value that holds; the platform's where the policy's own are not taken any more."""
    try:
        return resolve(found.config).to_json()
    except InvalidInput:
        return resolve({}).to_json()


def preset_named(found: Policy) -> str:
    """Return the preset that a policy is like; "" for none."""
    try:
        return preset_of(found.config)
    except InvalidInput:
        return ""


def _answer(request: HttpRequest, place: Place, found: Policy) -> forms.Form | None:
    form = AnswerForm(request.POST)
    if not form.is_valid():
        return form
    change_policy(policy_id=found.pk, actor=place.actor, **form.cleaned_data)
    return None


def _config(request: HttpRequest, place: Place, found: Policy) -> forms.Form | None:
    form = ConfigForm(data=request.POST)
    if not form.is_valid():
        return form
    try:
        configure(
            policy_id=found.pk,
            actor=place.actor,
            config=form.config(_resolved(found)),
            expected=form.cleaned_data["number"],
        )
    except AttuneError as error:
        complain(form, error)
        return form
    return None


def _choose(request: HttpRequest, place: Place, found: Policy) -> forms.Form | None:
    try:
        configure(policy_id=found.pk, actor=place.actor, config={}, preset=request.POST.get("preset", ""))
    except InvalidInput as error:
        raise Http404 from error
    return None


def _return(request: HttpRequest, place: Place, found: Policy) -> HttpResponse | None:
    """Let what once was hold again, as a new configuration."""
    number = request.POST.get("number", "")
    if not number.isdecimal() or len(number) > LONGEST_NUMBER:
        raise Http404
    row = PolicyConfig.objects.filter(policy=found, number=int(number)).first()
    if row is None:
        raise Http404
    kept = {name: value for name, value in row.overrides.items() if name not in OPERATORS}
    if (question := retention.ask_first(request, place, found, kept.get("retention_days"))) is not None:
        return question
    try:
        configure(policy_id=found.pk, actor=place.actor, config=kept, whole=True)
    except InvalidInput as error:
        raise InvalidInput(f"The platform does not take it any more: {error.message}") from error
    return None


def _rubric(request: HttpRequest, place: Place, found: Policy) -> forms.Form | None:
    return take_rubric(RubricForm(request.POST), place, found)


def _judging(request: HttpRequest, place: Place, found: Policy) -> forms.Form | None:
    return take_judging(JudgeForm(request.POST), place, found)


_ACTS: dict[str, Callable[[HttpRequest, Place, Policy], forms.Form | HttpResponse | None]] = {
    "answer": _answer,
    "config": _config,
    "retention": retention.change,
    "memory": memory.change,
    "preset": _choose,
    "return": _return,
    "rubric": _rubric,
    "judging": _judging,
}
