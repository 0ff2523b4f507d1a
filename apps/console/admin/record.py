"""Work announced and not yet sent, and who did what."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.console import show
from apps.console.admin.base import ConsoleAdmin, named
from kernel.models import AuditEntry, OutboxMessage


class UnsentFilter(admin.SimpleListFilter):
    """Waiting or sent."""

    title = "sent"
    parameter_name = "sent"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Name the two."""
        return [("no", "Waiting"), ("yes", "Sent")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[OutboxMessage]) -> QuerySet[OutboxMessage]:
        """Keep those asked for."""
        wanted = {"no": True, "yes": False}.get(self.value() or "")
        return queryset if wanted is None else queryset.filter(sent_at__isnull=wanted)


@admin.register(OutboxMessage)
class OutboxAdmin(ConsoleAdmin):
    """Tasks written with the change that asks for them; the relay sends them."""

    fills = (
        "A task stands here from the change that asks for it until the relay has sent it, and a while after. None means "
        "that nothing waits. A task that could not do its work leaves that at its row, where it is tried again: "
        "a failed judgement, a failed run, a dead delivery."
    )
    list_display = ("id", "task", "queue", "tenant", "available_at", "sent_at", "created_at")
    list_select_related = ("tenant",)
    list_filter = (UnsentFilter, "tenant")
    search_fields = ("task", "=queue", "=dedupe_key", "tenant__slug")
    ordering = ("-id",)
    fields = (
        "id",
        "task",
        "queue",
        "tenant",
        "arguments",
        "dedupe_key",
        "created_at",
        "available_at",
        "sent_at",
    )

    @admin.display(description="arguments")
    def arguments(self, message: OutboxMessage) -> SafeString:
        """Return what the task is told."""
        return show.as_json(message.kwargs)


@admin.register(AuditEntry)
class AuditAdmin(ConsoleAdmin):
    """Who did what to what, and why. Nobody can change or delete an entry."""

    fills = (
        "Every change by hand or by the platform leaves a row: making a tenant is the first. `manage.py "
        "first_run` makes one."
    )
    list_display = ("created_at", "who", "action", "to_what", "tenant")
    list_select_related = ("tenant",)
    list_filter = ("tenant",)
    search_fields = ("actor", "action", "target", "tenant__slug")
    ordering = ("-id",)
    fields = ("created_at", "who", "action", "to_what", "tenant", "detail_json", "id")
    names_in = ("actor", "target")
    who = named("actor", "who")
    to_what = named("target", "to what")

    @admin.display(description="detail")
    def detail_json(self, entry: AuditEntry) -> SafeString:
        """Return it as JSON."""
        return show.as_json(entry.detail)
