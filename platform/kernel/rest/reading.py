"""Bodies are read to the letter: `"1"` is no number, `0` is not false, a misspelt field is not overlooked."""

from collections.abc import Mapping
from typing import Any, cast

from drf_spectacular.extensions import OpenApiSerializerExtension
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from kernel.refusals import speak

# The library reads "yes" as True and False as 0.0; a caller who sends those has made a mistake and hears of it.
_TYPES: dict[type[serializers.Field[Any, Any, Any, Any]], tuple[tuple[type, ...], str]] = {
    serializers.BooleanField: ((bool,), "true or false"),
    serializers.IntegerField: ((int,), "a whole number"),
    serializers.FloatField: ((int, float), "a number"),
    serializers.CharField: ((str,), "a string"),
    serializers.UUIDField: ((str,), "a UUID, as a string"),
    serializers.DateTimeField: ((str,), "a time (RFC 3339), as a string"),
}

_KINDS: tuple[tuple[type[serializers.Field[Any, Any, Any, Any]], str], ...] = (
    (serializers.FloatField, "number"),
    (serializers.IntegerField, "whole number"),
    (serializers.EmailField, "address"),
    (serializers.DateTimeField, "time"),
    (serializers.UUIDField, "id"),
    (serializers.ListField, "list"),
)


class SomethingSaid(serializers.Serializer[Any]):
    """A body whose fields are all optional, but not all at once."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a body that names none of the fields."""
        if not attrs:
            names = list(self.fields)
            said = f"Give {', '.join(f'`{name}`' for name in names[:-1])} or `{names[-1]}`."
            raise ValidationError({names[0]: said})
        return attrs


class SomethingSaidScheme(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Says in the description what `SomethingSaid` asks for."""

    target_class = "kernel.rest.reading.SomethingSaid"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Return the schema of the fields, at least one of them present."""
        described = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)  # noqa: SLF001  # as its own extensions do
        return {**described, "minProperties": 1}


def read(serializer: serializers.BaseSerializer[Any]) -> dict[str, Any]:
    """Return what a serializer, made with the body as its `data`, reads; raise ValidationError with the fields at fault."""
    if isinstance(serializer, serializers.Serializer):
        body = serializer.initial_data
        wrong = _wrong(serializer, body) if isinstance(body, Mapping) else {}
        if wrong:
            raise ValidationError(wrong)
        _speak(serializer)
    serializer.is_valid(raise_exception=True)
    return cast("dict[str, Any]", serializer.validated_data)


def _speak(field: Any) -> None:
    """Let a field refuse in our words, and those in it: a serializer's fields are its own."""
    speak(field, next((kind for one, kind in _KINDS if isinstance(field, one)), ""))
    field.error_messages["required"] = "This is missing. Give it."
    if isinstance(field, serializers.ChoiceField):
        # the library formats this text once more
        choices = ", ".join(str(one).replace("{", "{{").replace("}", "}}") for one in field.choices)
        field.error_messages["invalid_choice"] = f"This is none of the choices: {choices}."
    if isinstance(field, serializers.ListField):
        _speak(field.child)
    for inner in field.fields.values() if isinstance(field, serializers.Serializer) else ():
        _speak(inner)


def _wrong(serializer: serializers.Serializer[Any], body: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: field for name, field in serializer.fields.items() if not field.read_only}
    wrong: dict[str, Any] = {name: ["There is no such field to set."] for name in body if name not in fields}
    for name, field in fields.items():
        if isinstance(field, serializers.Serializer) and isinstance(body.get(name), Mapping):
            if inside := _wrong(field, body[name]):
                wrong[name] = inside
        elif name in body and (words := _wanted_instead(field, body[name])):
            wrong[name] = [f"Must be {words}."]
    return wrong


def _wanted_instead(field: serializers.Field[Any, Any, Any, Any], value: object) -> str:
    if value is None:  # whether null is allowed, the field itself knows
        return ""
    if isinstance(field, serializers.ChoiceField):
        return "" if any(type(value) is type(one) for one in field.choices) else "one of the choices"
    if isinstance(field, serializers.ListField) and isinstance(value, list) and field.child is not None:
        return next(
            (f"a list: each {words}" for one in value if (words := _wanted_instead(field.child, one))), ""
        )
    for kind, (types, words) in _TYPES.items():
        if isinstance(field, kind):
            fits = isinstance(value, types) and not (isinstance(value, bool) and bool not in types)
            return "" if fits else words
    return ""
