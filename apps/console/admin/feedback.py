"""What people said of turns by hand. Reading it leaves an audit row."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.console import show
from apps.console.admin.base import ConsoleAdmin
from apps.console.admin.turns import TurnAdmin
from apps.conversations.models import Feedback


class ScoreFilter(admin.SimpleListFilter):
    """What was said: the three scores, not those that all rows have been looked through for."""

    title = "score"
    parameter_name = "score"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Name them."""
        return [("1", "good"), ("0", "neutral"), ("-1", "bad")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Feedback]) -> QuerySet[Feedback]:
        """Keep those asked for."""
        wanted = {"1": 1, "0": 0, "-1": -1}.get(self.value() or "")
        return queryset if wanted is None else queryset.filter(score=wanted)


@admin.register(Feedback)
class FeedbackAdmin(ConsoleAdmin):
    """What people said of turns by hand."""

    fills = (
        "A thumb or a correction under a reply in the dashboard's sessions leaves one, and so does POST "
        "/v1/feedback."
    )
    list_display = ("short_turn", "tenant", "user", "verdict", "corrected", "created_at")
    list_select_related = ("turn", "tenant", "user")
    list_filter = (ScoreFilter, "tenant")
    search_fields = ("=turn__id", "user__email", "tenant__slug")
    ordering = ("-id",)
    fields = ("turn", "tenant", "user", "verdict", "correction_text", "created_at")
    holds_text = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[Feedback]:
        """Leave the turn's long columns in the database."""
        heavy = [f"turn__{name}" for name in TurnAdmin.heavy]
        return super().get_queryset(request).defer(*heavy)

    @admin.display(description="turn")
    def short_turn(self, feedback: Feedback) -> SafeString:
        """Return the turn's id, cut."""
        return show.short(feedback.turn_id)

    @admin.display(description="score")
    def verdict(self, feedback: Feedback) -> SafeString:
        """Return it with its sign."""
        return show.reward(feedback.score)

    @admin.display(boolean=True)
    def corrected(self, feedback: Feedback) -> bool:
        """Whether they wrote what it should have said."""
        return bool(feedback.correction)

    @admin.display(description="correction")
    def correction_text(self, feedback: Feedback) -> str:
        """Return it, cut."""
        return show.cut(feedback.correction)
