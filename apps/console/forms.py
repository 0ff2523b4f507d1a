"""Forms of the console."""

from django import forms


class ReasonForm(forms.Form):
    """Why an operator does something; it goes into the audit row."""

    reason = forms.CharField(
        max_length=300,
        label="Why",
        help_text="Kept in the audit log.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autofocus": True}),
    )
