"""Why somebody does something, as it is typed beside a button."""

from django import forms
from django.http import HttpRequest, QueryDict

from kernel.errors import InvalidInput
from kernel.refusals import InOurWords


def reason_of(request: HttpRequest, *, longest: int, unsaid: str) -> str:
    """Return the reason that was posted, `unsaid` where there is none; raise InvalidInput for one that cannot be kept."""
    form = _ReasonForm(request.POST, longest=longest)
    if not form.is_valid():
        raise InvalidInput(str(form.errors["reason"][0]).rstrip("."), field="reason")
    return form.cleaned_data["reason"] or unsaid


class _ReasonForm(InOurWords):
    def __init__(self, data: QueryDict, *, longest: int) -> None:
        super().__init__(data)
        self.fields["reason"] = forms.CharField(max_length=longest, required=False, label="Reason")
