"""What a field says where it refuses a value: what its limit is, and what to do.

In forms of pages as under /api.

Django, its REST framework and its filters have texts of their own for this, each in another tone. Here they
stand once, by the codes of these libraries, with the places that Django fills in.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

_OF_ANY: Mapping[str, str] = {
    "blank": "this is empty. Fill it in.",
    "empty": "this is empty. Give at least one.",
    "invalid_choice": "this is none of the choices. Choose once more.",
    "invalid_list": "this is no list. Give one.",
    "max_length": "at most %(limit_value)s characters, and this has %(show_value)s. Make it shorter.",
    "max_value": "at most %(limit_value)s. Give a smaller number.",
    "min_length": "at least %(limit_value)s characters, and this has %(show_value)s. Make it longer.",
    "min_value": "at least %(limit_value)s. Give a larger number.",
    "not_a_list": "this is no list. Give one.",
    "null": "this may not be null. Give a value, or leave it out.",
    "null_characters_not_allowed": "it holds a character that cannot be kept. Take it out.",
    "required": "this is empty. Fill it in.",
}
_OF_KIND: Mapping[tuple[str, str], str] = {
    ("invalid", "address"): "this is no address. It looks like you@example.org.",
    ("invalid", "id"): "this is no UUID.",
    ("invalid", "number"): "this is no number. Give one, such as 0.5.",
    ("invalid", "time"): "this is no time (RFC 3339). Give one, such as 2026-01-31T09:00:00Z.",
    ("invalid", "whole number"): "this is no whole number. Give one, such as 7.",
    ("max_length", "list"): "at most %(limit_value)s, and these are %(show_value)s. Take some out.",
    ("min_length", "list"): "at least %(limit_value)s, and these are %(show_value)s. Add some.",
}
_KINDS: tuple[tuple[type[forms.Field], str], ...] = (
    (forms.FloatField, "number"),  # which is a kind of whole number to Django
    (forms.IntegerField, "whole number"),
    (forms.EmailField, "address"),
    (forms.DateTimeField, "time"),
    (forms.UUIDField, "id"),
)


def words_for(code: str, kind: str = "") -> str | None:
    """Return what is said of a value, with places as in `%(limit_value)s`;
    None for a code that others speak for."""
    return _OF_KIND.get((code, kind)) or _OF_ANY.get(code)


def kind_of(field: forms.Field) -> str:
    """Return of which kind the values of a form's field are; "" for what needs no words of its own."""
    return next((kind for one, kind in _KINDS if isinstance(field, one)), "")


def speak(field: Any, kind: str) -> None:
    """Let one field of a serializer or of a filter refuse in these words;
    what it shares with others stays as it is."""
    for code in field.error_messages:
        if words := words_for(code, kind):
            field.error_messages[code] = sentence(words)
    field.validators = [_speaking(validator, kind) for validator in field.validators]


def _speaking(validator: Any, kind: str) -> Any:
    words = words_for(getattr(validator, "code", ""), kind)
    if not words:
        return validator
    own = copy(validator)
    own.message = sentence(words)
    return own


def sentence(words: str) -> str:
    """Return words as they stand alone, without the name of their field before them."""
    return words[0].upper() + words[1:]


def _for_people(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is filled into words, with commas in large numbers."""
    return {name: f"{one:,}" if isinstance(one, int) else one for name, one in given.items()}


class InOurWords(forms.Form):
    """A form that names the field in what is said against it."""

    def add_error(self, field: Any, error: Any) -> None:
        """Add a refusal, put into our words where it is a field's."""
        super().add_error(field, error if field is None else self._put(field, error))

    def called(self, name: str) -> str:
        """Return what the page calls a field: its label, without what that explains."""
        return str(self.fields[name].label or name.replace("_", " ").capitalize()).partition(";")[0]

    def words_of(self, name: str, error: ValidationError) -> str | None:
        """Return what is said of a refusal at a field; None where it is in our words already."""
        words = words_for(error.code or "", kind_of(self.fields[name]))
        return words and f"{self.called(name)}: {words % _for_people(error.params or {})}"

    def _put(self, name: str, error: ValidationError | str) -> ValidationError:
        given = error if isinstance(error, ValidationError) else ValidationError(error)
        return ValidationError([self._said(name, one) for one in given.error_list])

    def _said(self, name: str, error: ValidationError) -> ValidationError:
        words = self.words_of(name, error)
        return error if words is None else ValidationError(words, code=error.code)
