"""Forms of the settings: bounds are those of what they set, so that an error stands at its field."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import QueryDict

from apps.judging.models import MAX_RUBRIC_CHARACTERS, MAX_VOTES, PersonalData
from apps.learning.config import described
from kernel.errors import AttuneError
from kernel.refusals import InOurWords

PERSONAL_DATA = {
    "": "as one level above",
    PersonalData.OFF.value: "nothing is looked for",
    PersonalData.REDACT.value: "judges and training never see it",
    PersonalData.DROP.value: "such turns are not trained on",
}
# what a person changes of a configuration; the rest is for /api
ASKED = {
    "method": "What teaches",
    "lr": "Learning rate",
    "batch_size": "Samples in a step",
    "flush_s": "A smaller step after, seconds",
    "max_staleness": "Samples may be stale by, steps (η)",
    "past_staleness": "Staler ones",
    "order": "The queue is taken from",
    "window": "Window, as a part of the buffer (W)",
    "buffer": "Buffer, turns",
    "kl_weight": "Weight of staying close to the base",
    "schedule": "Learning rate over time",
    "warmup_steps": "Warm-up, steps",
}
WORDS = {
    "combined": "rewards and hints",
    "binary": "rewards alone",
    "opd": "hints alone",
    "drop": "are left out",
    "down_weight": "count less",
    "windowed": "within a window from the oldest",
    "strict": "from the oldest alone",
    "greedy": "whatever ended first",
    "constant": "constant",
    "linear": "falls in a line",
    "cosine": "falls as a cosine",
}


class ConfigForm(InOurWords):
    """The settings of `ASKED`, each within its own bounds, and the number that the person looked at."""

    number = forms.IntegerField(min_value=1, widget=forms.HiddenInput)

    def __init__(self, *, data: QueryDict | None = None, initial: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, initial=dict(initial or {}))
        bounds = described()
        for name, label in ASKED.items():
            self.fields[name] = _field(bounds[name], label)

    def config(self, now: Mapping[str, Any]) -> dict[str, Any]:
        """Return what differs from `now`: what a person left as it was stays the platform's where it was."""
        return {name: self.cleaned_data[name] for name in ASKED if self.cleaned_data[name] != now[name]}


def _field(bounds: Mapping[str, Any], label: str) -> forms.Field:
    if "enum" in bounds:
        return forms.ChoiceField(choices=[(word, WORDS[word]) for word in bounds["enum"]], label=label)
    if bounds["type"] == "integer":
        return forms.IntegerField(min_value=bounds["minimum"], max_value=bounds["maximum"], label=label)
    number = forms.FloatField(min_value=bounds["minimum"], max_value=bounds["maximum"], label=label)
    number.widget.attrs["step"] = "any"
    return number


class AnswerForm(InOurWords):
    """How a policy answers where the client says nothing, and whether it learns."""

    temperature = forms.FloatField(min_value=0, max_value=2, label="Temperature where the client names none")
    training_enabled = forms.BooleanField(required=False, label="Learn from conversations")


class RubricForm(InOurWords):
    """What replies are judged by."""

    text = forms.CharField(
        max_length=MAX_RUBRIC_CHARACTERS,
        required=False,
        label="Rubric",
        help_text="Empty: what holds one level above (the tenant's, at last the built-in one).",
        widget=forms.Textarea(attrs={"rows": 6}),
    )


class JudgeForm(InOurWords):
    """How turns are judged; an empty field is as one level above."""

    votes = forms.IntegerField(min_value=1, max_value=MAX_VOTES, required=False, label="Votes of a judgement")
    personal_data = forms.ChoiceField(
        choices=[*PERSONAL_DATA.items()], required=False, label="Where personal data is found"
    )


class TenantJudgeForm(JudgeForm):
    """As for a policy, with the cap, which is the tenant's."""

    daily_tokens = forms.IntegerField(
        min_value=0, max_value=10**15, required=False, label="At most, judge tokens a day (UTC); 0 is no cap"
    )


def complain(form: forms.Form, error: AttuneError) -> None:
    """Put a refusal at the field that it names, or above the form."""
    field = (error.field or "").rpartition("config.")[2]
    form.add_error(field if field in form.fields and field != "number" else None, error.message)
