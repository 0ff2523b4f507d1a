"""Policies, the versions of their adapters, and the moves of the live pointer."""

import datetime as dt
from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString

from apps.adapters.models import AdapterVersion, GateResult, PointerMove, Policy, VersionState
from apps.adapters.selectors import with_version_counts
from apps.adapters.services import move_pointer
from apps.console import show
from apps.console.admin.base import Act, ConsoleAdmin
from apps.console.forms import RubricForm, WindowForm
from apps.conversations.models import Session, Turn
from apps.engines.models import LoadedAdapter
from apps.judging.agreement import agreement
from apps.judging.services import rejudge_window, write_rubric
from apps.learning import refusals
from apps.learning.drift import pauses, selectors
from apps.learning.models import OPEN_RUN_STATES, Sample, SampleState, TrainingRun
from apps.learning.runs import request_run
from apps.learning.selectors import with_ready_counts


def _retrain(policy: Policy, who: str, why: str) -> str:
    del why  # kept in the audit row
    run = request_run(policy=policy, actor=who)
    return f"run …{str(run.pk)[-8:]} is queued; the trainer takes it next."


def _replay(policy: Policy, who: str, why: str) -> str:
    del why  # kept in the audit row
    return f"{refusals.replay(policy=policy, actor=who)} samples wait again."


def _rejudge(policy: Policy, who: str, why: str, *, hours: int) -> str:
    del why  # kept in the audit row
    until = timezone.now()
    rejudging = rejudge_window(policy=policy, since=until - dt.timedelta(hours=hours), until=until, actor=who)
    return f"{rejudging.total} turns are judged once more."


def _write_rubric(policy: Policy, who: str, why: str, *, text: str) -> str:
    del why  # kept in the audit row
    rubric = write_rubric(tenant_id=policy.tenant_id, policy=policy, text=text, actor=who)
    return f"rubric {rubric.number} counts from now on."


def _to_base(policy: Policy, who: str, why: str) -> str:
    move_pointer(policy_id=policy.pk, to_version_id=None, actor=who, reason=why)
    return f"{policy.name} answers from the bare base now."


def _pause(policy: Policy, who: str, why: str) -> str:
    pauses.pause(policy_id=policy.pk, actor=who, reason=why)
    return f"{policy.name} makes no more steps until somebody resumes it; its turns are served and kept."


def _resume(policy: Policy, who: str, why: str) -> str:
    pauses.resume(policy_id=policy.pk, actor=who, reason=why)
    return f"{policy.name} trains again as soon as a batch waits."


def _make_live(version: AdapterVersion, who: str, why: str) -> str:
    move_pointer(policy_id=version.policy_id, to_version_id=version.pk, actor=who, reason=why)
    return f"{version.policy.name} answers from version {version.number} now."


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
    acts = (
        Act(
            name="rejudge",
            label="Re-judge a window",
            question=lambda policy: (
                f"The judges look at turns of {policy.tenant} / {policy.name} once more, by the rubric of now. Old "
                "verdicts stay; the new ones count for what no training step has taken."
            ),
            do=_rejudge,
            offered=lambda policy: True,
            form=WindowForm,
        ),
        Act(
            name="rubric",
            label="Write a rubric",
            question=lambda policy: (
                f"From now on turns of {policy.tenant} / {policy.name} are judged by these words as well. What was "
                "judged before stays as it is."
            ),
            do=_write_rubric,
            offered=lambda policy: True,
            form=RubricForm,
        ),
        Act(
            name="retrain",
            label="Trigger retraining",
            question=lambda policy: (
                f"The trainer takes the ready samples of {policy.tenant} / {policy.name} now, however few they are, "
                "and makes a version of them. It goes live if it passes its checks."
            ),
            do=_retrain,
            offered=lambda policy: Sample.objects.filter(policy=policy, state=SampleState.READY).exists(),
        ),
        Act(
            name="replay",
            label="Replay samples that were set aside",
            question=lambda policy: (
                f"The samples of {policy.tenant} / {policy.name} that were in too many refused steps get all their tries "
                "back and wait for a step again."
            ),
            do=_replay,
            offered=lambda policy: bool(refusals.set_aside(policy.pk)),
        ),
        Act(
            name="to-base",
            label="Roll back to the bare base",
            question=lambda policy: (
                f"{policy.tenant} / {policy.name} answers from version 0, the model as it came. "
                "Requests in flight finish on the version they began with."
            ),
            do=_to_base,
            offered=lambda policy: policy.live_id is not None,
        ),
        Act(
            name="pause-training",
            label="Pause training",
            question=lambda policy: (
                f"{policy.tenant} / {policy.name} makes no more steps until somebody resumes it. A step under way ends. "
                "Turns are served, judged and kept meanwhile."
            ),
            do=_pause,
            offered=lambda policy: not pauses.why_paused(policy.pk),
        ),
        Act(
            name="resume-training",
            label="Resume training",
            question=lambda policy: (
                f"Training of {policy.tenant} / {policy.name} stands still: {pauses.why_paused(policy.pk)}. "
                "It goes on; what stopped it counts as dealt with, and would stop it anew."
            ),
            do=_resume,
            offered=lambda policy: bool(pauses.why_paused(policy.pk)),
        ),
    )
    panels_template = "console/policy.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add the counts, one subquery each."""
        policies = with_ready_counts(with_version_counts(super().get_queryset(request)))
        open_runs = TrainingRun.objects.filter(policy=OuterRef("pk"), state__in=OPEN_RUN_STATES)
        rows: QuerySet[Any] = policies.annotate(has_open_run=Exists(open_runs))
        return rows

    def panels(self, policy: Policy) -> dict[str, object]:
        """Show the last versions and moves, and how far it has drifted."""
        return {
            "versions": policy.versions.select_related("parent").order_by("-number")[:20],
            "moves": policy.moves.select_related("from_version", "to_version").order_by("-created_at")[:20],
            "live_id": policy.live_id,
            "agreements": agreement(policy_id=policy.pk),
            "gauges": selectors.series(policy.pk),
            "crossings": selectors.crossings(policy.pk),
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
        return show.chip("running") if policy.has_open_run else "-"

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


@admin.register(AdapterVersion)
class VersionAdmin(ConsoleAdmin):
    """One immutable adapter: where it came from, what was measured, what it was made of."""

    fills = (
        "A training step that changed something makes one. Steps begin when enough samples wait; “Trigger "
        "retraining” on a policy's page takes those that there are."
    )
    list_display = (
        "served_name",
        "number",
        "policy",
        "tenant",
        "state_chip",
        "parent_number",
        "depth",
        "short_hash",
        "is_live",
        "created_at",
    )
    list_select_related = ("tenant", "policy", "parent")
    list_filter = ("state", "tenant", "policy")
    search_fields = ("served_name", "=sha256", "tenant__slug")
    ordering = ("-id",)
    heavy = ("metrics",)
    fields = (
        "served_name",
        "number",
        "policy",
        "tenant",
        "is_live",
        "state_chip",
        "reason",
        "parent_number",
        "depth",
        "rank",
        "alpha",
        "sha256",
        "path",
        "run",
        "created_at",
        "ready_at",
        "measured",
    )
    acts = (
        Act(
            name="make-live",
            label="Make live",
            question=lambda version: (
                f"{version.tenant} / {version.policy.name} answers from version {version.number} from the next request on, "
                "whether that is newer or older than what is live. Requests in flight finish on the version they began with."
            ),
            do=_make_live,
            offered=lambda version: (
                version.state == VersionState.READY and version.policy.live_id != version.pk
            ),
        ),
    )
    panels_template = "console/version.html"

    def panels(self, version: AdapterVersion) -> dict[str, object]:
        """Show the checks it passed, where it is loaded and the samples it was made of."""
        loads = LoadedAdapter.objects.filter(adapter__served_name=version.served_name)
        return {
            "gates": version.gate_results.order_by("created_at"),
            "loads": loads.select_related("engine").order_by("engine__url"),
            "samples": Sample.objects.filter(run_id=version.run_id).order_by("created_at")[:200],
            "children": version.children.order_by("number"),
        }

    @admin.display(description="state")
    def state_chip(self, version: AdapterVersion) -> SafeString:
        """Return how far it got."""
        return show.chip(version.state)

    @admin.display(description="parent")
    def parent_number(self, version: AdapterVersion) -> SafeString | str:
        """Return what it continued."""
        return show.version(version.parent)

    @admin.display(description="hash")
    def short_hash(self, version: AdapterVersion) -> str:
        """Return the part that its name carries."""
        return version.sha256[:8]

    @admin.display(description="live")
    def is_live(self, version: AdapterVersion) -> SafeString | str:
        """Say whether its policy answers from it."""
        return show.chip("live") if version.policy.live_id == version.pk else "-"

    @admin.display(description="run")
    def run(self, version: AdapterVersion) -> SafeString | str:
        """Link to the run that made it."""
        return show.link(TrainingRun.objects.filter(pk=version.run_id).first())

    @admin.display(description="metrics")
    def measured(self, version: AdapterVersion) -> SafeString:
        """Return what the step measured."""
        return show.as_json(version.metrics)


@admin.register(GateResult)
class GateResultAdmin(ConsoleAdmin):
    """What the checks said of versions."""

    fills = (
        "Each new version is checked before it goes live, and what each check said stands here. A first "
        "version comes of a training run."
    )
    list_display = ("check_name", "version", "tenant", "passed", "created_at")
    list_select_related = ("version", "tenant")
    list_filter = ("passed", "tenant")
    search_fields = ("check_name", "version__served_name")
    ordering = ("-id",)
    fields = ("version", "tenant", "check_name", "passed", "measured", "created_at")

    @admin.display(description="detail")
    def measured(self, result: GateResult) -> SafeString:
        """Return what was measured."""
        return show.as_json(result.detail)


@admin.register(PointerMove)
class PointerMoveAdmin(ConsoleAdmin):
    """Every move of a live pointer, who asked for it and why."""

    fills = (
        "A row is written when another version begins to answer: by itself once one passed its checks, or "
        "by “Make live” on a version's page."
    )
    list_display = ("policy", "tenant", "was", "became", "actor", "reason", "created_at")
    list_select_related = ("policy", "tenant", "from_version", "to_version")
    list_filter = ("tenant",)
    search_fields = ("policy__name", "tenant__slug", "actor")
    ordering = ("-id",)
    fields = ("policy", "tenant", "was", "became", "actor", "reason", "created_at")

    @admin.display(description="from")
    def was(self, move: PointerMove) -> SafeString | str:
        """Return the version it left."""
        return show.version(move.from_version)

    @admin.display(description="to")
    def became(self, move: PointerMove) -> SafeString | str:
        """Return the version it names since."""
        return show.version(move.to_version)
