"""Sessions, each as a line of its turns. Reading what people wrote leaves an audit row."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.fields.json import KeyTransform
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.console import show
from apps.console.admin.base import ConsoleAdmin
from apps.conversations.models import Session, Turn
from apps.conversations.selectors import with_turn_counts

TURNS_SHOWN = 100

# what a timeline needs of a turn: everything but the long arrays
_TIMELINE = (
    "id",
    "created_at",
    "state",
    "kind",
    "side",
    "reply",
    "next_state",
    "next_turn_id",
    "parent_id",
    "latency_ms",
    "version",
    "session_id",
    "tenant_id",
)


@admin.register(Session)
class SessionAdmin(ConsoleAdmin):
    """Conversations; the page of one is its timeline."""

    fills = (
        "The first request to /v1 begins one. A key for it is made under Keys in a tenant's dashboard, or "
        "by `manage.py create_key`."
    )
    list_display = ("short_id", "tenant", "user", "policy", "kind", "turns", "last_turn_at", "created_at")
    list_select_related = ("tenant", "user", "policy", "end_user")
    list_filter = ("kind", "tenant", "policy")
    search_fields = ("=id", "=external_id", "user__email", "tenant__slug")
    ordering = ("-id",)
    fields = (
        "id",
        "tenant",
        "user",
        "end_user",
        "policy",
        "kind",
        "external_id",
        "created_at",
        "last_turn_at",
        "idle_at",
        "goto",
    )
    holds_text = True
    panels_template = "console/session.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add the number of turns."""
        return with_turn_counts(super().get_queryset(request))

    def panels(self, session: Session) -> dict[str, object]:
        """Show the last turns, oldest first."""
        rows = (
            session.turns.select_related("version", "sample")
            .annotate(last_message=KeyTransform("-1", "messages"))
            .only(*_TIMELINE, "version__number", "sample__state", "sample__reason", "sample__reward")
            .order_by("-created_at", "-id")[:TURNS_SHOWN]
        )
        turns = list(reversed(rows))
        by_id: dict[object, Turn] = {turn.pk: turn for turn in turns}
        return {"turns": [_in_timeline(turn, by_id.get(turn.parent_id)) for turn in turns]}

    @admin.display(description="session")
    def short_id(self, session: Session) -> SafeString:
        """Return the id, cut."""
        return show.short(session.pk)

    @admin.display
    def turns(self, session: Any) -> int:
        """Count."""
        return int(session.n_turns)

    @admin.display(description="see also")
    def goto(self, session: Session) -> SafeString:
        """Link to the list of turns."""
        return show.listing(Turn, "turns as a list", session__id__exact=session.pk)


def _in_timeline(turn: Any, parent: Turn | None) -> dict[str, object]:
    """Return a turn for the session's page: what its request added, and the reply."""
    continues = parent is not None and parent.next_turn_id == turn.pk
    added = parent.next_state if parent is not None and continues else [turn.last_message]
    return {
        "turn": turn,
        "added": [show.message(message) for message in added or [] if message],
        "reply": show.message(turn.reply) if turn.reply else None,
        "sample": getattr(turn, "sample", None),
    }
