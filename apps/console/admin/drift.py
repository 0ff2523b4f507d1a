"""Readings of the drift gauges, crossings of their bounds, pauses of training."""

from django.contrib import admin
from django.utils.safestring import SafeString

from apps.console import show
from apps.console.admin.base import ConsoleAdmin, named
from apps.learning.drift.bounds import BY_MEASURE
from apps.learning.drift.models import Crossing, DriftReading, TrainingPause


def _about(measure: str) -> str:
    return BY_MEASURE[measure].about if measure in BY_MEASURE else measure.replace("_", " ")


@admin.register(DriftReading)
class ReadingAdmin(ConsoleAdmin):
    """One gauge of one policy at a run's end, or over a week."""

    fills = (
        "Gauges are read at the end of each training run, and of each week. Train a policy, and its first "
        "readings stand here."
    )
    list_display = ("created_at", "tenant", "policy", "gauge", "version_number", "in_short")
    list_select_related = ("tenant", "policy", "version")
    list_filter = ("gauge", "tenant")
    search_fields = ("=id", "=run__id", "policy__name", "tenant__slug")
    ordering = ("-id",)
    heavy = ("detail", "bounds")
    fields = (
        "created_at",
        "tenant",
        "policy",
        "gauge",
        "run",
        "version_number",
        "since",
        "until",
        "measured",
        "behind_it",
        "held_against",
        "id",
    )

    @admin.display(description="version")
    def version_number(self, reading: DriftReading) -> SafeString | str:
        """Return the version it speaks of."""
        return show.version(reading.version)

    @admin.display(description="measures")
    def in_short(self, reading: DriftReading) -> str:
        """Return the measures in one line."""
        return show.in_brief({_about(name): value for name, value in reading.values.items()})

    @admin.display(description="measures")
    def measured(self, reading: DriftReading) -> SafeString:
        """Return the measures."""
        return show.as_json(reading.values)

    @admin.display(description="behind them")
    def behind_it(self, reading: DriftReading) -> SafeString:
        """Return histograms and counts."""
        return show.as_json(reading.detail)

    @admin.display(description="bounds then")
    def held_against(self, reading: DriftReading) -> SafeString:
        """Return the limits and what a crossing would have done."""
        return show.as_json(reading.bounds)


@admin.register(Crossing)
class CrossingAdmin(ConsoleAdmin):
    """Measures that went past their bound, and what was done."""

    fills = (
        "A row is written when a measure goes past its bound. None means that all are within theirs, or "
        "that nothing was read yet. DRIFT_BOUNDS moves the bounds."
    )
    list_display = ("created_at", "tenant", "policy", "about", "action_chip", "words", "done", "cleared_at")
    list_select_related = ("tenant", "policy")
    list_filter = ("action", "tenant")
    search_fields = ("=id", "=measure", "policy__name", "tenant__slug")
    ordering = ("-id",)
    names_in = ("cleared_by",)
    over_by = named("cleared_by", "cleared by")
    fields = (
        "created_at",
        "tenant",
        "policy",
        "about",
        "value",
        "bound",
        "action_chip",
        "words",
        "done",
        "acted_at",
        "cleared_at",
        "over_by",
        "reading",
        "version",
        "id",
    )

    @admin.display(description="measure")
    def about(self, crossing: Crossing) -> str:
        """Return what was measured, in words."""
        return _about(crossing.measure)

    @admin.display(description="action")
    def action_chip(self, crossing: Crossing) -> SafeString:
        """Return what it asked for."""
        return show.chip(crossing.action)


@admin.register(TrainingPause)
class PauseAdmin(ConsoleAdmin):
    """When training of policies stood still, and why. It is resumed on the policy's page."""

    fills = (
        "Training pauses when a crossing asks for it, or by “Pause training” on a policy's page. None means "
        "that all policies go on."
    )
    list_display = ("created_at", "tenant", "policy", "why", "who", "resumed_at", "back_by")
    list_select_related = ("tenant", "policy")
    list_filter = ("tenant",)
    search_fields = ("=id", "policy__name", "tenant__slug")
    ordering = ("-id",)
    fields = ("created_at", "tenant", "policy", "why", "who", "resumed_at", "back_by", "id")
    names_in = ("actor", "resumed_by")
    who = named("actor", "who")
    back_by = named("resumed_by", "resumed by")

    @admin.display(description="why")
    def why(self, pause: TrainingPause) -> str:
        """Return what was said of it."""
        return pause.reason
