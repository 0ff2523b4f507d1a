"""Judgements with every vote and hint."""

from django.contrib import admin
from django.utils.safestring import SafeString

from apps.console import show
from apps.console.admin.base import ConsoleAdmin
from apps.judging.models import Judgement


@admin.register(Judgement)
class JudgementAdmin(ConsoleAdmin):
    """What judges made of turns."""

    list_display = (
        "short_turn",
        "tenant",
        "judge",
        "state_chip",
        "verdict",
        "source",
        "attempts",
        "settled_at",
        "created_at",
    )
    list_select_related = ("tenant",)
    list_filter = ("state", "tenant")
    search_fields = ("=turn__id", "=id", "tenant__slug")
    date_hierarchy = "created_at"
    ordering = ("-id",)
    fields = (
        "turn",
        "tenant",
        "judge",
        "prompt_version",
        "state_chip",
        "verdict",
        "source",
        "reason",
        "attempts",
        "created_at",
        "settled_at",
    )
    holds_text = True
    panels_template = "console/judgement.html"

    def panels(self, judgement: Judgement) -> dict[str, object]:
        """Show the votes and the hints."""
        return {"judgements": [judgement], "votes_only": True}

    @admin.display(description="turn")
    def short_turn(self, judgement: Judgement) -> SafeString:
        """Return the turn's id, cut."""
        return show.short(judgement.turn_id)

    @admin.display(description="state", ordering="state")
    def state_chip(self, judgement: Judgement) -> SafeString:
        """Return its state."""
        return show.chip(judgement.state)

    @admin.display(description="reward", ordering="reward")
    def verdict(self, judgement: Judgement) -> SafeString:
        """Return the strict majority."""
        return show.reward(judgement.reward)
