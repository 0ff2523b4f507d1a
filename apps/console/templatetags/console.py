"""What the console's templates need beyond Django's own filters."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.contrib import admin
from django.db.models import Model
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from apps.adapters.models import GateResult
from apps.console import show
from apps.console.spark import spark
from apps.evaluation.choosing.in_words import Said, in_words
from apps.learning.drift.selectors import Series

register = template.Library()
register.filter("chip", show.chip)
register.filter("reward", show.reward)
register.filter("short", show.short)
register.filter("in_brief", show.in_brief)
register.filter("seconds", show.seconds)


@register.filter
def sparkline(series: Series) -> SafeString:
    """Draw a measure over time, with the bound of its newest reading."""
    last = series.last
    return spark([point.value for point in series.points], last.limit if last else None)


@register.filter
def measured(result: GateResult) -> list[Said]:
    """Return what a check measured, in people's words."""
    return in_words(result.check_name, result.detail)


@register.filter
def called(part: Any) -> str:
    """Return what stands over a page: the name of a list, or what a row is called."""
    if not isinstance(part, Model):
        return capfirst(str(part))
    page: Any = admin.site._registry.get(type(part))  # noqa: SLF001
    return str(part) if page is None else page.called(part)


@register.filter
def named(token: str, words: Mapping[str, str]) -> SafeString | str:
    """Return whom a name of the audit log stands for, by `names_of`."""
    return show.named(token, words)


@register.filter
def bound(number: int | None) -> str:
    """Return a limit: a number, that there is none, or that nobody said one."""
    return "-" if number is None else f"{number:,}" if number else "no limit"


@register.filter
def digits(value: float) -> str:
    """Return a number to three digits."""
    return f"{value:.3g}"
