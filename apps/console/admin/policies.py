"""Policies: what answers, how each learns, how far it has drifted."""

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.adapters.models import AdapterVersion, Policy
from apps.adapters.selectors import with_version_counts
from apps.console import show
from apps.console.admin.base import ConsoleAdmin
from apps.console.admin.policy_acts import ACTS
from apps.console.names import names_of
from apps.conversations.models import Session, Turn
from apps.judging.agreement import agreement
from apps.learning.drift import pauses, selectors
from apps.learning.models import OPEN_RUN_STATES, Sample, TrainingRun
from apps.learning.selectors import with_ready_counts


@admin.register(Policy)
class PolicyAdmin(ConsoleAdmin):
    """What tenants call a model."""

    fills = (
        "Whoever signs up gets one called default, and so does each tenant that `manage.py create_tenant` "
        "makes. More are made by POST /api/policies."
    )
    list_display = (
        "name",
        "tenant",
        "live_number",
        "versions_count",
        "ready_samples",
        "open_run",
        "training_enabled",
        "created_at",
    )
    list_select_related = ("tenant", "live")
    list_filter = ("training_enabled", "tenant")
    search_fields = ("name", "tenant__slug")
    ordering = ("tenant__slug", "name")
    fields = (
        "name",
        "tenant",
        "base_model",
        "live_number",
        "temperature",
        "training_enabled",
        "configuration",
        "versions_count",
        "ready_samples",
        "open_run",
        "created_at",
        "goto",
        "id",
    )
    acts = ACTS
    panels_template = "console/policy.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add the counts, one subquery each."""
        policies = with_ready_counts(with_version_counts(super().get_queryset(request)))
        open_runs = TrainingRun.objects.filter(policy=OuterRef("pk"), state__in=OPEN_RUN_STATES)
        rows: QuerySet[Any] = policies.annotate(has_open_run=Exists(open_runs))
        return rows

    def panels(self, policy: Policy) -> dict[str, object]:
        """Show the last versions and moves, and how far it has drifted."""
        moves = list(policy.moves.select_related("from_version", "to_version").order_by("-created_at")[:20])
        crossings = selectors.crossings(policy.pk)
        return {
            "versions": policy.versions.select_related("parent").order_by("-number")[:20],
            "moves": moves,
            "names": names_of([*(move.actor for move in moves), *(one.cleared_by for one in crossings)]),
            "live_id": policy.live_id,
            "agreements": agreement(policy_id=policy.pk),
            "gauges": selectors.series(policy.pk),
            "crossings": crossings,
            "paused": pauses.why_paused(policy.pk),
        }

    @admin.display(description="live version", ordering="live__number")
    def live_number(self, policy: Policy) -> SafeString | str:
        """Return what answers now."""
        return show.version(policy.live)

    @admin.display(description="versions", ordering="n_versions")
    def versions_count(self, policy: Any) -> int:
        """Count."""
        return int(policy.n_versions)

    @admin.display(ordering="n_ready")
    def ready_samples(self, policy: Any) -> int:
        """Count."""
        return int(policy.n_ready)

    @admin.display(ordering="has_open_run")
    def open_run(self, policy: Any) -> SafeString | str:
        """Say whether a run is queued or running."""
        return show.chip("under way") if policy.has_open_run else "-"

    @admin.display(description="training overrides")
    def configuration(self, policy: Policy) -> SafeString:
        """Return them as JSON."""
        return show.as_json(policy.config)

    @admin.display(description="see also")
    def goto(self, policy: Policy) -> SafeString:
        """Link to what belongs to the policy."""
        return show.joined(
            show.listing(model, name, policy__id__exact=policy.pk)
            for model, name in (
                (AdapterVersion, "versions"),
                (TrainingRun, "runs"),
                (Sample, "samples"),
                (Session, "sessions"),
                (Turn, "turns"),
            )
        )
