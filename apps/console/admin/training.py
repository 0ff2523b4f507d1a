"""Samples and the runs that consume them."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.adapters.models import AdapterVersion
from apps.console import show
from apps.console.admin.base import Act, ConsoleAdmin, named
from apps.conversations.models import TurnKind
from apps.learning.models import OPEN_RUN_STATES, RunState, Sample, TrainingRun
from apps.learning.runs import cancel_run, resume_run
from apps.learning.selectors import with_sample_counts


@admin.register(Sample)
class SampleAdmin(ConsoleAdmin):
    """What turns are worth; or why nothing."""

    fills = (
        "A turn becomes one once judges voted on it or somebody gave it a thumb. Talk to a policy, go on "
        "after its reply, and the first is there within seconds."
    )
    list_display = (
        "short_turn",
        "tenant",
        "policy",
        "kind",
        "state_chip",
        "reason",
        "verdict",
        "hint_count",
        "version_number",
        "staleness",
        "created_at",
    )
    list_select_related = ("tenant", "policy", "version")
    list_filter = ("state", "tenant", "policy")
    search_fields = ("=id", "=turn__id", "=run__id", "tenant__slug", "reason")
    ordering = ("-id",)
    heavy = ("outcome",)
    fields = (
        "turn",
        "tenant",
        "policy",
        "kind",
        "state_chip",
        "reason",
        "verdict",
        "version_number",
        "staleness",
        "run",
        "created_at",
        "consumed_at",
        "made_of_it",
    )
    holds_text = True
    panels_template = "console/sample.html"

    def panels(self, sample: Sample) -> dict[str, object]:
        """Show the hints, best first."""
        return {"hints": [show.cut(hint.get("text", "")) for hint in sample.hints]}

    @admin.display(description="kind")
    def kind(self, sample: Sample) -> str:
        """Return the turn's kind."""
        return str(TurnKind(sample.source).label) if sample.source in TurnKind else sample.source

    @admin.display(description="turn")
    def short_turn(self, sample: Sample) -> SafeString:
        """Return the turn's id, cut."""
        return show.short(sample.turn_id)

    @admin.display(description="state")
    def state_chip(self, sample: Sample) -> SafeString:
        """Return its state."""
        return show.chip(sample.state)

    @admin.display(description="reward")
    def verdict(self, sample: Sample) -> SafeString:
        """Return it with its sign."""
        return show.reward(sample.reward)

    @admin.display(description="hints")
    def hint_count(self, sample: Sample) -> int:
        """Count."""
        return len(sample.hints)

    @admin.display(description="version")
    def version_number(self, sample: Sample) -> SafeString | str:
        """Return the version that wrote the reply."""
        return show.version(sample.version)

    @admin.display(description="outcome")
    def made_of_it(self, sample: Sample) -> SafeString:
        """Return what the step did with it."""
        return show.as_json(sample.outcome)


def _cancel(run: TrainingRun, who: str, why: str) -> str:
    del why  # kept in the audit row
    cancel_run(run_id=run.pk, actor=who)
    return "it ends without a version; its samples wait for the next run."


def _resume(run: TrainingRun, who: str, why: str) -> str:
    del why  # kept in the audit row
    resume_run(run_id=run.pk, actor=who)
    return "it is queued; a trainer takes it in its turn."


@admin.register(TrainingRun)
class RunAdmin(ConsoleAdmin):
    """Steps of policies: how far, what was measured, what came of it."""

    fills = (
        "A run begins when as many samples wait as a policy's batch holds, or when somebody asks: “Trigger "
        "retraining” on a policy's page."
    )
    list_display = (
        "short_id",
        "tenant",
        "policy",
        "state_chip",
        "how_far",
        "asked_for_by",
        "samples",
        "version_number",
        "reason",
        "took",
        "created_at",
    )
    list_select_related = ("tenant", "policy", "version", "parent")
    list_filter = ("state", "tenant", "policy")
    search_fields = ("=id", "trigger", "tenant__slug", "reason")
    ordering = ("-id",)
    heavy = ("config", "metrics")
    names_in = ("trigger",)
    asked_for_by = named("trigger", "asked for by")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "id",
                    "tenant",
                    "policy",
                    "state_chip",
                    "reason",
                    "how_far",
                    "asked_for_by",
                    "samples",
                    "parent_number",
                    "version_number",
                    "took",
                    "created_at",
                    "started_at",
                    "finished_at",
                )
            },
        ),
        ("Lease", {"fields": ("fence", "attempts", "lease_until")}),
        ("Measured", {"fields": ("measured",)}),
        ("Exact configuration", {"fields": ("config_number", "configuration")}),
    )
    acts = (
        Act(
            name="cancel",
            label="Cancel the run",
            question=lambda run: (
                f"The run of {run.tenant} / {run.policy} ends without a version. Its samples wait for the next run."
            ),
            do=_cancel,
            offered=lambda run: run.state in OPEN_RUN_STATES,
        ),
        Act(
            name="resume",
            label="Resume the run",
            question=lambda run: (
                f"The run of {run.tenant} / {run.policy} is queued again with all its tries, for whatever samples wait now."
            ),
            do=_resume,
            offered=lambda run: run.state in (RunState.FAILED, RunState.CANCELLED),
        ),
    )
    panels_template = "console/run.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add the number of samples."""
        return with_sample_counts(super().get_queryset(request))

    def panels(self, run: TrainingRun) -> dict[str, object]:
        """Show the samples it took."""
        return {"samples": run.samples.order_by("created_at")[:200]}

    @admin.display(description="run")
    def short_id(self, run: TrainingRun) -> SafeString:
        """Return the id, cut."""
        return show.short(run.pk)

    @admin.display(description="state")
    def state_chip(self, run: TrainingRun) -> SafeString:
        """Return its state."""
        return show.chip(run.state)

    @admin.display(description="progress")
    def how_far(self, run: TrainingRun) -> str:
        """Return the trainer's last words."""
        told = run.progress
        if not told:
            return "-"
        return f"{told.get('phase', '?')} {told.get('done', 0)} of {told.get('total', 0)}, {told.get('seconds', 0.0):.0f} s"

    @admin.display
    def samples(self, run: Any) -> int:
        """Count."""
        return int(run.n_samples)

    @admin.display(description="version made")
    def version_number(self, run: TrainingRun) -> SafeString | str:
        """Return it, if it made one."""
        version: AdapterVersion | None = run.version
        return "-" if version is None else show.version(version)

    @admin.display(description="started from")
    def parent_number(self, run: TrainingRun) -> SafeString | str:
        """Return the version it continued."""
        return show.version(run.parent)

    @admin.display
    def took(self, run: TrainingRun) -> str:
        """Return its seconds."""
        if run.started_at is None or run.finished_at is None:
            return "-"
        return f"{(run.finished_at - run.started_at).total_seconds():.0f} s"

    @admin.display(description="metrics")
    def measured(self, run: TrainingRun) -> SafeString:
        """Return what the step measured."""
        return show.as_json(run.metrics)

    @admin.display(description="configuration")
    def configuration(self, run: TrainingRun) -> SafeString:
        """Return what the step used."""
        return show.as_json(run.config)
