"""Engines, and what is loaded where."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.console import show
from apps.console.admin.base import ConsoleAdmin
from apps.engines.models import DesiredAdapter, Engine, LoadedAdapter, LoadState


@admin.register(Engine)
class EngineAdmin(ConsoleAdmin):
    """SGLang servers."""

    fills = (
        "Those named in ENGINE_URLS stand here as soon as the workers run; `manage.py engine add URL` adds "
        "one while they do."
    )
    list_display = ("url", "state_chip", "adapters", "room", "heard_at", "reason")
    list_filter = ("state",)
    search_fields = ("url",)
    ordering = ("url",)
    fields = (
        "url",
        "state_chip",
        "reason",
        "boot_id",
        "model_path",
        "adapters",
        "room",
        "heard_at",
        "created_at",
    )
    panels_template = "console/engine.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add the number of adapters that answered there."""
        probed = Count("loaded", filter=Q(loaded__state=LoadState.PROBED))
        rows: QuerySet[Any] = super().get_queryset(request).annotate(n_probed=probed)
        return rows

    def panels(self, engine: Engine) -> dict[str, object]:
        """Show what was asked of it and what it said."""
        return {"loads": engine.loaded.select_related("adapter", "tenant").order_by("-updated_at")[:200]}

    @admin.display(description="state", ordering="state")
    def state_chip(self, engine: Engine) -> SafeString:
        """Return its state."""
        return show.chip(engine.state)

    @admin.display(description="room for adapters", ordering="max_loaded_loras")
    def room(self, engine: Engine) -> int:
        """Return how many it can have loaded."""
        return engine.max_loaded_loras

    @admin.display(description="last heard of", ordering="seen_at")
    def heard_at(self, engine: Engine) -> str:
        """Return when it last answered."""
        return show.moment(engine.seen_at)

    @admin.display(description="adapters loaded", ordering="n_probed")
    def adapters(self, engine: Any) -> int:
        """Count those that were probed."""
        return int(engine.n_probed)


@admin.register(DesiredAdapter)
class DesiredAdapterAdmin(ConsoleAdmin):
    """What every engine should have loaded."""

    fills = (
        "A version that is published is wanted here, until it answers nobody any more. The first comes of a "
        "training run."
    )
    list_display = ("served_name", "tenant", "wanted", "short_hash", "created_at")
    list_select_related = ("tenant",)
    list_filter = ("wanted", "tenant")
    search_fields = ("served_name", "tenant__slug")
    ordering = ("-id",)
    fields = ("served_name", "tenant", "wanted", "sha256", "path", "created_at")

    @admin.display(description="hash")
    def short_hash(self, adapter: DesiredAdapter) -> str:
        """Return the part that its name carries."""
        return adapter.sha256[:8]


@admin.register(LoadedAdapter)
class LoadedAdapterAdmin(ConsoleAdmin):
    """What engines answered about adapters."""

    fills = (
        "Once a version is wanted, each engine's answer about it stands here. The first comes of a training "
        "run."
    )
    list_display = ("adapter", "engine", "tenant", "state_chip", "reason", "updated_at")
    list_select_related = ("adapter", "engine", "tenant")
    list_filter = ("state", "engine", "tenant")
    search_fields = ("adapter__served_name", "engine__url")
    ordering = ("-id",)
    fields = (
        "adapter",
        "engine",
        "tenant",
        "state_chip",
        "reason",
        "boot_id",
        "measured",
        "created_at",
        "updated_at",
    )

    def called(self, row: LoadedAdapter) -> str:
        """Say what is where."""
        return f"{row.adapter} on {row.engine}"

    @admin.display(description="state")
    def state_chip(self, load: LoadedAdapter) -> SafeString:
        """Return how far it got."""
        return show.chip(load.state)

    @admin.display(description="probe")
    def measured(self, load: LoadedAdapter) -> SafeString:
        """Return what was measured."""
        return show.as_json(load.probe)
