"""What the console's templates need beyond Django's own filters."""

from django import template

from apps.console import show

register = template.Library()
register.filter("chip", show.chip)
register.filter("reward", show.reward)
register.filter("short", show.short)
register.filter("in_brief", show.in_brief)
register.filter("seconds", show.seconds)
