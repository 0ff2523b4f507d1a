"""Forms of the console."""

from typing import Any

from django import forms

from apps.judging.models import MAX_RUBRIC_CHARACTERS
from apps.keys.services import LARGEST_LIMIT
from apps.keys.tenant_limit import LABELS
from kernel.refusals import InOurWords


class ReasonForm(InOurWords):
    """Why an operator does something; it goes into the audit row."""

    reason = forms.CharField(
        max_length=300,
        label="Why",
        help_text="Kept in the audit log.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        # what is done comes before why
        self.order_fields([name for name in self.fields if name != "reason"])
        next(iter(self.fields.values())).widget.attrs["autofocus"] = True


class PauseForm(ReasonForm):
    """Why a tenant is paused, which it reads."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.fields[
            "reason"
        ].help_text = "The tenant's people read it, and so does whoever calls with its keys."


class WindowForm(ReasonForm):
    """Which turns are judged again."""

    hours = forms.IntegerField(
        min_value=1,
        max_value=24 * 90,
        initial=24,
        label="Turns of the last … hours",
        help_text="At most 90 days.",
    )


class RubricForm(ReasonForm):
    """What replies are judged by besides what came next."""

    text = forms.CharField(
        required=False,
        max_length=MAX_RUBRIC_CHARACTERS,
        label="Rubric",
        help_text="In words, for the judge model. Empty: what holds one level above.",
        widget=forms.Textarea(attrs={"rows": 8}),
    )


class VerdictForm(ReasonForm):
    """An operator's verdict."""

    reward = forms.TypedChoiceField(
        choices=[(1, "good"), (0, "neutral"), (-1, "bad")], coerce=int, label="Verdict"
    )


def _limit(name: str) -> forms.IntegerField:
    return forms.IntegerField(
        min_value=0,
        max_value=LARGEST_LIMIT,
        required=False,
        label=LABELS[name],
        help_text="Empty: the platform's default. 0: no limit.",
    )


class LimitsForm(ReasonForm):
    """What all keys of a tenant together may ask."""

    requests_per_minute = _limit("requests_per_minute")
    tokens_per_minute = _limit("tokens_per_minute")
    concurrent = _limit("concurrent")
