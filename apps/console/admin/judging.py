"""Judgements with every vote and hint."""

from django.contrib import admin
from django.utils.safestring import SafeString

from apps.console import show
from apps.console.admin.base import Act, ConsoleAdmin, named
from apps.console.forms import VerdictForm
from apps.judging.models import Judgement, JudgementState, JudgeSpend, Rejudging, RejudgingState, Rubric
from apps.judging.services import cancel_rejudging, override, replay
from apps.judging.services.windows import progress_of
from kernel.ids import tail


def _override(judgement: Judgement, who: str, why: str, *, reward: int) -> str:
    override(turn_id=judgement.turn_id, reward=reward, actor=who, reason=why)
    return "the turn's sample follows, where no step has taken it."


def _replay(judgement: Judgement, who: str, why: str) -> str:
    del why  # kept in the audit row
    replay(judgement_id=judgement.pk, actor=who)
    return "the judge is asked again."


@admin.register(Judgement)
class JudgementAdmin(ConsoleAdmin):
    """What judges made of turns."""

    fills = (
        "A reply is judged once its session goes on or has been idle for SESSION_IDLE_S. Talk to a policy, "
        "and the first is asked for with the second message."
    )
    list_display = (
        "short_turn",
        "tenant",
        "judged_by",
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
    ordering = ("-id",)
    names_in = ("judge",)  # of an override: who
    judged_by = named("judge", "judge")
    fields = (
        "turn",
        "tenant",
        "judged_by",
        "prompt_version",
        "rubric",
        "votes_asked",
        "temperature",
        "state_chip",
        "verdict",
        "source",
        "reason",
        "attempts",
        "created_at",
        "settled_at",
    )
    acts = (
        Act(
            name="override",
            label="Override the verdict",
            question=lambda judgement: (
                f"Your verdict on the turn {tail(judgement.turn_id)} of {judgement.tenant} takes the place of every judge's, and their hints no longer count. The judges' verdicts stay "
                "as rows; what a person said of the turn by hand still counts more."
            ),
            do=_override,
            offered=lambda judgement: judgement.state != JudgementState.PENDING,
            form=VerdictForm,
        ),
        Act(
            name="replay",
            label="Replay the judgement",
            question=lambda judgement: (
                f"The turn {tail(judgement.turn_id)} of {judgement.tenant} could not be judged: {judgement.reason}. The "
                "judge is asked again, with all its attempts."
            ),
            do=_replay,
            offered=lambda judgement: judgement.state == JudgementState.FAILED,
        ),
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

    @admin.display(description="state")
    def state_chip(self, judgement: Judgement) -> SafeString:
        """Return its state."""
        return show.chip(judgement.state)

    @admin.display(description="reward")
    def verdict(self, judgement: Judgement) -> SafeString:
        """Return the strict majority."""
        return show.reward(judgement.reward)


@admin.register(Rubric)
class RubricAdmin(ConsoleAdmin):
    """What tenants want replies judged by; the newest of a policy counts, else of its tenant."""

    fills = (
        "Without one, replies are judged by the platform's own words. A tenant writes one under Settings; "
        "an operator by “Write a rubric” on a policy's page."
    )
    list_display = ("number", "tenant", "policy", "who", "created_at")
    list_select_related = ("tenant", "policy")
    list_filter = ("tenant", "policy")
    ordering = ("-id",)
    fields = ("number", "tenant", "policy", "words", "who", "created_at")
    names_in = ("actor",)
    who = named("actor", "who")
    holds_text = True

    @admin.display(description="text")
    def words(self, rubric: Rubric) -> str:
        """Return it, cut."""
        return show.cut(rubric.text) or "(the built-in one)"


@admin.register(JudgeSpend)
class JudgeSpendAdmin(ConsoleAdmin):
    """What judging cost tenants by day, and what the cap refused."""

    fills = (
        "A row a day and tenant, once a judge costs tokens: one that is a model does "
        "(JUDGE_BACKEND=openai), the built-in one does not."
    )
    list_display = (
        *("day", "tenant", "judgements", "prompt_tokens", "completion_tokens", "reserved"),
        *("cost", "abstained", "refused"),
    )
    list_select_related = ("tenant",)
    list_filter = ("tenant",)
    ordering = ("-day", "tenant")
    fields = list_display

    @admin.display(ordering="cost_micros")
    def cost(self, spend: JudgeSpend) -> str:
        """Return it in whole units of the currency."""
        return f"{spend.cost_micros / 1e6:.4f}"


def _cancel(rejudging: Rejudging, who: str, why: str) -> str:
    del why  # kept in the audit row
    cancel_rejudging(rejudging_id=rejudging.pk, actor=who)
    return "what was judged already stays."


@admin.register(Rejudging)
class RejudgingAdmin(ConsoleAdmin):
    """Windows that are judged once more, and how far they are."""

    fills = "“Re-judge a window” on a policy's page, or `manage.py rejudge`, begins one."
    list_display = (
        "short_id",
        "tenant",
        "policy",
        "state_chip",
        "turns",
        "since",
        "until",
        "who",
        "created_at",
    )
    names_in = ("actor",)
    who = named("actor", "who")
    list_select_related = ("tenant", "policy", "rubric")
    list_filter = ("state", "tenant", "policy")
    ordering = ("-id",)
    fields = (
        *("tenant", "policy", "state_chip", "reason", "how_far", "since", "until", "judge", "prompt_version"),
        *("rubric", "votes_asked", "temperature", "who", "created_at", "finished_at"),
    )
    acts = (
        Act(
            name="cancel",
            label="Cancel the re-judging",
            question=lambda rejudging: (
                f"No more turns of {rejudging.tenant} / {rejudging.policy} from {rejudging.since:%Y-%m-%d %H:%M} to "
                f"{rejudging.until:%Y-%m-%d %H:%M} UTC are judged once more; what was judged stays."
            ),
            do=_cancel,
            offered=lambda rejudging: rejudging.state == RejudgingState.RUNNING,
        ),
    )

    @admin.display(description="re-judging")
    def short_id(self, rejudging: Rejudging) -> SafeString:
        """Return the id, cut."""
        return show.short(rejudging.pk)

    @admin.display(description="state")
    def state_chip(self, rejudging: Rejudging) -> SafeString:
        """Return its state."""
        return show.chip(rejudging.state)

    @admin.display(description="turns")
    def turns(self, rejudging: Rejudging) -> int:
        """Count them."""
        return rejudging.total

    @admin.display(description="turns")
    def how_far(self, rejudging: Rejudging) -> str:
        """Count what is judged."""
        progress = progress_of(rejudging)
        return f"{progress.settled} of {progress.total}, {progress.dead} dead letters"
