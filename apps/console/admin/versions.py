"""Versions of adapters, what the checks said of them, and the moves of the live pointer."""

from django.contrib import admin
from django.utils.safestring import SafeString

from apps.adapters.models import AdapterVersion, GateResult, PointerMove, VersionState
from apps.adapters.services import move_pointer
from apps.console import show
from apps.console.admin.base import Act, ConsoleAdmin, named
from apps.engines.models import LoadedAdapter
from apps.learning.models import Sample, TrainingRun


def _make_live(version: AdapterVersion, who: str, why: str) -> str:
    move_pointer(policy_id=version.policy_id, to_version_id=version.pk, actor=who, reason=why)
    return f"{version.policy.name} answers from version {version.number} now."


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

    @admin.display(description="measured")
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
    list_display = ("checked", "version", "tenant", "passed", "created_at")
    list_select_related = ("version", "tenant")
    list_filter = ("passed", "tenant")
    search_fields = ("check_name", "version__served_name")
    ordering = ("-id",)
    fields = ("version", "tenant", "checked", "passed", "measured", "created_at")

    @admin.display(description="check")
    def checked(self, result: GateResult) -> str:
        """Return what was checked."""
        return result.check_name

    @admin.display(description="measured")
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
    list_display = ("policy", "tenant", "was", "became", "who", "why", "created_at")
    list_select_related = ("policy", "tenant", "from_version", "to_version")
    list_filter = ("tenant",)
    search_fields = ("policy__name", "tenant__slug", "actor")
    ordering = ("-id",)
    names_in = ("actor",)
    who = named("actor", "who")
    fields = ("policy", "tenant", "was", "became", "who", "why", "created_at")

    def called(self, row: PointerMove) -> str:
        """Say from where to where whose pointer went."""
        was, became = (one.number if one is not None else 0 for one in (row.from_version, row.to_version))
        return f"{row.policy}: {was} → {became}"

    @admin.display(description="why")
    def why(self, move: PointerMove) -> str:
        """Return what was said of it."""
        return move.reason or "-"

    @admin.display(description="from")
    def was(self, move: PointerMove) -> SafeString | str:
        """Return the version it left."""
        return show.version(move.from_version)

    @admin.display(description="to")
    def became(self, move: PointerMove) -> SafeString | str:
        """Return the version it names since."""
        return show.version(move.to_version)
