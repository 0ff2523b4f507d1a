"""Filters of lists: what names a filter and says nothing is a mistake, not a wish for everything."""

import datetime as dt
from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet
from django_filters.fields import IsoDateTimeField
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from kernel.refusals import kind_of, speak


class StrictFilters(DjangoFilterBackend):  # type: ignore[misc]  # the library is not typed
    """The library's, which also refuses an empty value (it would show all rows) and the same filter twice, in our words."""

    def get_filterset(self, request: Request, queryset: QuerySet[Any], view: Any) -> Any:
        """Return the filters of a view, if it has some."""
        found = super().get_filterset(request, queryset, view)
        for field in found.form.fields.values() if found is not None else ():
            speak(field, kind_of(field))
        return found

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        """Return the rows that the query asks for; raise ValidationError with the parameter at fault."""
        filterset = self.get_filterset(request, queryset, view)
        for name in filterset.filters if filterset is not None else ():
            given = request.query_params.getlist(name)
            if len(given) > 1:
                raise ValidationError({name: ["Give this once."]})
            if given == [""]:
                raise ValidationError({name: ["Say which, or leave it out."]})
        return super().filter_queryset(request, queryset, view)  # type: ignore[no-any-return]


@extend_schema_field({"type": "string", "minLength": 1})
class TextFilter(django_filters.CharFilter):  # type: ignore[misc]  # the library is not typed
    """Rows whose text is exactly this."""


@extend_schema_field({"type": "boolean"})
class FlagFilter(django_filters.TypedChoiceFilter):  # type: ignore[misc]  # the library is not typed
    """Rows of which something is so, or is not: `true` or `false`. The library's reads all else as no wish at all."""

    def __init__(self, **options: Any) -> None:
        choices = [("true", "true"), ("false", "false")]
        super().__init__(choices=choices, coerce=lambda value: value == "true", **options)


class _MomentField(IsoDateTimeField):  # type: ignore[misc]  # the library is not typed
    def clean(self, value: Any) -> dt.datetime | None:
        moment: dt.datetime | None = super().clean(value)
        try:
            return moment and moment.astimezone(dt.UTC)
        except OverflowError:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from None


class MomentFilter(django_filters.IsoDateTimeFilter):  # type: ignore[misc]  # the library is not typed
    """Rows before or since a time (RFC 3339); one that lies in no year there is in UTC is refused, as Postgres would."""

    field_class = _MomentField
