"""How a policy uses memory: what a person sets of it."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpRequest, QueryDict

from apps.adapters.models import Policy
from apps.dashboard.places import Place
from apps.dashboard.settings.forms import complain
from apps.dashboard.templatetags.pages import thousands
from apps.memory.models import LAST_HOUR, MOST_BUDGET_TOKENS, MOST_SHADOW_TOKENS, MemorySetting
from apps.memory.services import set_setting
from kernel.errors import AttuneError
from kernel.refusals import InOurWords


class MemoryForm(InOurWords):
    """Whether a policy is told what people asked for, whether its weights take it over,
    and what either may cost."""

    in_prompt = forms.BooleanField(
        required=False, label="Tell the model what people asked for, in their own prompts"
    )
    budget_tokens = forms.IntegerField(
        min_value=0, max_value=MOST_BUDGET_TOKENS, required=False, label="Tokens of a prompt for that"
    )
    shadow = forms.BooleanField(
        required=False, label="Let the weights take it over in quiet minutes, so that it need not be told"
    )
    shadow_tokens_per_day = forms.IntegerField(
        min_value=0, max_value=MOST_SHADOW_TOKENS, required=False, label="Tokens written for it in 24 hours"
    )
    shadow_from_hour = forms.IntegerField(
        min_value=0, max_value=LAST_HOUR, required=False, label="Quiet minutes from this hour, UTC"
    )
    shadow_until_hour = forms.IntegerField(
        min_value=0, max_value=LAST_HOUR, required=False, label="… until this one; both empty: all day"
    )

    def __init__(self, data: QueryDict | None = None, *, initial: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, initial=dict(initial or {}))
        self._say_what_empty_is("budget_tokens", settings.MEMORY_BUDGET_TOKENS)
        self._say_what_empty_is("shadow_tokens_per_day", settings.SHADOW_TOKENS_PER_DAY)

    def _say_what_empty_is(self, name: str, number: int) -> None:
        field = self.fields[name]
        field.label = f"{field.label}; empty: the platform's, {thousands(number)}"


def filled(own: MemorySetting) -> MemoryForm:
    """Return the form with a policy's own setting."""
    return MemoryForm(initial={name: getattr(own, name) for name in MemoryForm.base_fields})


def change(request: HttpRequest, place: Place, policy: Policy) -> forms.Form | None:
    """Take what the form says; return it where it is wrong."""
    form = MemoryForm(request.POST)
    if not form.is_valid():
        return form
    try:
        set_setting(policy=policy, actor=place.actor, **form.cleaned_data)
    except AttuneError as error:
        complain(form, error)
        return form
    return None
