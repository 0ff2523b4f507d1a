"""What fields say where they refuse: one table for forms, serializers and filters."""

import importlib
import pkgutil
from typing import Any

import django_filters
import pytest
from django import forms
from django.core.exceptions import ValidationError as Refused
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

import apps
from kernel.refusals import InOurWords, kind_of, speak
from kernel.rest.reading import read


class Settings(InOurWords):
    """Fields of every kind that pages have."""

    votes = forms.IntegerField(
        min_value=1, max_value=15, label="Votes; empty: the platform's", required=False
    )
    rate = forms.FloatField(min_value=0.5, max_value=2, required=False)
    tokens = forms.IntegerField(max_value=10**6, required=False)
    name = forms.CharField(min_length=2, max_length=4, required=False)
    mail = forms.EmailField(required=False)
    method = forms.ChoiceField(choices=[("a", "A")], required=False)
    events = forms.MultipleChoiceField(choices=[("a", "A")], required=False)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"votes": "16"}, "Votes: at most 15. Give a smaller number."),
        ({"votes": "0"}, "Votes: at least 1. Give a larger number."),
        ({"votes": "9" * 5000}, "Votes: this is no whole number. Give one, such as 7."),
        ({"votes": "1.5"}, "Votes: this is no whole number. Give one, such as 7."),
        ({"rate": "nan"}, "Rate: this is no number. Give one, such as 0.5."),
        ({"rate": "3"}, "Rate: at most 2. Give a smaller number."),
        ({"rate": "0.1"}, "Rate: at least 0.5. Give a larger number."),
        ({"tokens": "1000001"}, "Tokens: at most 1,000,000. Give a smaller number."),
        ({"name": "12345"}, "Name: at most 4 characters, and this has 5. Make it shorter."),
        ({"name": "1"}, "Name: at least 2 characters, and this has 1. Make it longer."),
        ({"name": "1\x00"}, "Name: it holds a character that cannot be kept. Take it out."),
        ({"mail": "ada"}, "Mail: this is no address. It looks like you@example.org."),
        ({"method": "%(b)s"}, "Method: this is none of the choices. Choose once more."),
        ({"events": ["b"]}, "Events: this is none of the choices. Choose once more."),
    ],
)
def test_a_form_names_the_field_and_the_limit(given: dict[str, Any], words: str) -> None:
    form = Settings(given)
    assert {name: list(errors) for name, errors in form.errors.items()} == {next(iter(given)): [words]}


def test_a_form_says_what_is_missing_and_leaves_what_others_say() -> None:
    class Needed(Settings):
        votes = forms.IntegerField(label="Votes")

    form = Needed({})
    assert form.errors == {"votes": ["Votes: this is empty. Fill it in."]}
    form.add_error("votes", "It is 100 % wrong.")
    form.add_error("votes", Refused("so is %(this)s", code="own", params={"this": "that"}))
    form.add_error(None, "At once.")
    assert list(form.errors["votes"])[1:] == ["It is 100 % wrong.", "so is that"]
    assert form.non_field_errors() == ["At once."]


def test_every_form_of_ours_speaks_so() -> None:
    for one in pkgutil.walk_packages(apps.__path__, "apps."):
        if "management" not in one.name and "migrations" not in one.name:
            importlib.import_module(one.name)
    ours: list[type[forms.Form]] = []
    found = [forms.Form]
    while found:
        found = [sub for one in found for sub in one.__subclasses__()]
        ours += [one for one in found if one.__module__.startswith("apps.")]
    assert len(ours) > 25
    assert [one for one in ours if not issubclass(one, InOurWords)] == []


class Inner(serializers.Serializer[Any]):
    """What stands within a body."""

    share = serializers.FloatField(min_value=0, max_value=1)


class Body(serializers.Serializer[Any]):
    """Fields of every kind that bodies have."""

    votes = serializers.IntegerField(min_value=1, max_value=15, required=False)
    name = serializers.CharField(min_length=2, max_length=4, required=False)
    method = serializers.ChoiceField(choices=["{a}", "b"], required=False)
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=["a", "b"]), min_length=1, max_length=2, required=False
    )
    at = serializers.DateTimeField(required=False)
    who = serializers.UUIDField(required=False)
    mail = serializers.EmailField(required=False)
    inner = Inner(required=False)

    def validate_votes(self, votes: int) -> int:
        """Refuse in words of one's own."""
        if votes == 13:
            raise ValidationError("Not 13.")
        return votes


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"votes": 16}, {"votes": ["At most 15. Give a smaller number."]}),
        ({"votes": 0}, {"votes": ["At least 1. Give a larger number."]}),
        ({"votes": None}, {"votes": ["This may not be null. Give a value, or leave it out."]}),
        ({"votes": 13}, {"votes": ["Not 13."]}),
        ({"votes": "1"}, {"votes": ["Must be a whole number."]}),
        ({"name": ""}, {"name": ["This is empty. Fill it in."]}),
        ({"name": "12345"}, {"name": ["At most 4 characters, and this has 5. Make it shorter."]}),
        ({"name": "1\x00"}, {"name": ["It holds a character that cannot be kept. Take it out."]}),
        ({"method": "{c}"}, {"method": ["This is none of the choices: {a}, b."]}),
        ({"events": []}, {"events": ["At least 1, and these are 0. Add some."]}),
        ({"events": ["a", "b", "a"]}, {"events": ["At most 2, and these are 3. Take some out."]}),
        ({"events": ["a", "c"]}, {"events": {1: ["This is none of the choices: a, b."]}}),
        ({"events": "a"}, {"events": ["This is no list. Give one."]}),
        ({"at": "noon"}, {"at": ["This is no time (RFC 3339). Give one, such as 2026-01-31T09:00:00Z."]}),
        ({"who": "7"}, {"who": ["This is no UUID."]}),
        ({"mail": "ada"}, {"mail": ["This is no address. It looks like you@example.org."]}),
        ({"inner": {"share": 2}}, {"inner": {"share": ["At most 1. Give a smaller number."]}}),
        ({"inner": {}}, {"inner": {"share": ["This is missing. Give it."]}}),
    ],
)
def test_a_body_is_refused_in_the_same_words(body: dict[str, Any], words: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as error:
        read(Body(data=body))
    assert error.value.detail == words
    assert Body().fields["votes"].validators[0].message != "At most 15. Give a smaller number."  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("filter_", "given", "words"),
    [
        (django_filters.UUIDFilter(), "7", "This is no UUID."),
        (
            django_filters.ChoiceFilter(choices=[("a", "A")]),
            "b",
            "This is none of the choices. Choose once more.",
        ),
        (
            django_filters.IsoDateTimeFilter(),
            "noon",
            "This is no time (RFC 3339). Give one, such as 2026-01-31T09:00:00Z.",
        ),
    ],
)
def test_a_filter_is_refused_in_the_same_words(filter_: Any, given: str, words: str) -> None:
    field = filter_.field
    speak(field, kind_of(field))
    with pytest.raises(Refused) as error:
        field.clean(given)
    assert error.value.messages == [words]
