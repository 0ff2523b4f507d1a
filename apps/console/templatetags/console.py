"""What the console's templates need beyond Django's own filters."""

from django import template
from django.utils.safestring import SafeString

from apps.console import show
from apps.console.spark import spark
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
def bound(number: int | None) -> str:
    """Return a limit: a number, that there is none, or that nobody said one."""
    return "-" if number is None else f"{number:,}" if number else "no limit"


@register.filter
def digits(value: float) -> str:
    """Return a number to three digits."""
    return f"{value:.3g}"
