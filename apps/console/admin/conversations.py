"""Sessions, turns and feedback. Reading what people wrote leaves an audit row."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.fields.json import KeyTransform
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.console import show
from apps.console.admin.base import ConsoleAdmin
from apps.conversations.models import Feedback, Session, Turn
from apps.conversations.selectors import with_turn_counts
from apps.judging.models import Judgement
from apps.judging.reasons import explained
from apps.learning.models import Sample, SampleState

TURNS_SHOWN = 100
TOKENS_SHOWN = 512

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


@admin.register(Turn)
class TurnAdmin(ConsoleAdmin):
    """Requests and replies, with the exact tokens."""

    fills = (
        "Each request to /v1 leaves one. A key for it is made under Keys in a tenant's dashboard, or by "
        "`manage.py create_key`."
    )
    list_display = (
        "short_id",
        "tenant",
        "policy",
        "version_number",
        "state_chip",
        "kind",
        "tokens",
        "latency",
        "reward",
        "sample_state",
        "created_at",
    )
    list_select_related = ("tenant", "policy", "version", "sample")
    list_filter = ("state", "kind", "side", "prompt_source", "tenant", "policy")
    search_fields = ("=id", "=session__id", "tenant__slug")
    ordering = ("-id",)
    heavy = (
        "messages",
        "tools",
        "prompt_ids",
        "output_ids",
        "output_logprobs",
        "spans",
        "reply",
        "next_state",
    )
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "id",
                    "tenant",
                    "session",
                    "parent",
                    "policy",
                    "version_number",
                    "state_chip",
                    "error",
                    "kind",
                    "use",
                    "created_at",
                    "completed_at",
                )
            },
        ),
        (
            "Generation",
            {
                "fields": (
                    "tokens",
                    "latency",
                    "first_token_ms",
                    "finish_reason",
                    "prompt_source",
                    "prompt_reason",
                    "told_of_person",
                    "sampling_json",
                    "written_by",
                    "key",
                    "engine_id",
                )
            },
        ),
    )
    holds_text = True
    panels_template = "console/turn.html"

    def panels(self, turn: Turn) -> dict[str, object]:
        """Show the conversation, the tokens, what came next, what judges said and what became of it."""
        judgements = Judgement.objects.filter(turn=turn).prefetch_related("votes", "hints")
        pairs = list(zip(turn.output_ids, turn.output_logprobs, strict=False))
        sample = Sample.objects.filter(turn=turn).select_related("run", "version").first()
        return {
            "turn": turn,
            "messages_before": [show.message(message) for message in turn.messages],
            "reply": show.message(turn.reply) if turn.reply else None,
            "next_state": [show.message(message) for message in turn.next_state or []],
            "pairs": [(token, logprob, _weight(logprob)) for token, logprob in pairs[:TOKENS_SHOWN]],
            "tokens_hidden": max(0, len(turn.output_ids) - TOKENS_SHOWN),
            "judgements": judgements.order_by("created_at"),
            "feedback": turn.feedback.select_related("user").order_by("created_at"),
            "sample": sample,
            "why": explained(sample.reason) if sample is not None else "",
        }

    @admin.display(description="turn")
    def short_id(self, turn: Turn) -> SafeString:
        """Return the id, cut."""
        return show.short(turn.pk)

    @admin.display(description="version")
    def version_number(self, turn: Turn) -> SafeString | str:
        """Return the version that answered."""
        return show.version(turn.version)

    @admin.display(description="state")
    def state_chip(self, turn: Turn) -> SafeString:
        """Return its state."""
        return show.chip(turn.state)

    @admin.display(description="tokens in → out")
    def tokens(self, turn: Turn) -> str:
        """Return what was read and written."""
        usage = turn.usage or {}
        return f"{usage.get('prompt_tokens', '-')} → {usage.get('completion_tokens', '-')}"

    @admin.display
    def latency(self, turn: Turn) -> str:
        """Return seconds to the last byte."""
        return show.seconds(turn.latency_ms)

    @admin.display
    def reward(self, turn: Turn) -> SafeString:
        """Return the verdict's reward."""
        sample = getattr(turn, "sample", None)
        return show.reward(None if sample is None else sample.reward)

    @admin.display(description="sample")
    def sample_state(self, turn: Turn) -> SafeString | str:
        """Return what became of it."""
        sample = getattr(turn, "sample", None)
        return "-" if sample is None else show.chip(sample.state)

    @admin.display(description="use")
    def use(self, turn: Turn) -> str:
        """Say whether it may be trained on, and why not where that is known."""
        if turn.side:
            return "side turn: served and stored, never trained on"
        sample = getattr(turn, "sample", None)
        if sample is not None and sample.state == SampleState.INELIGIBLE:
            return f"not trained on, {sample.reason}: {explained(sample.reason)}"
        return "may be trained on"

    @admin.display(description="told of the person")
    def told_of_person(self, turn: Turn) -> str:
        """Return what the prompt said beside the client's messages."""
        return turn.memory["text"] if turn.memory else "nothing"

    @admin.display(description="sampling")
    def sampling_json(self, turn: Turn) -> SafeString:
        """Return the parameters used."""
        return show.as_json(turn.sampling)

    @admin.display(description="written by")
    def written_by(self, turn: Turn) -> str:
        """Return which version wrote from which token on."""
        return ", ".join(f"{name} from token {start}" for start, name in turn.spans)


def _weight(logprob: float) -> str:
    """Return how sure the model was of a token, as one of four steps."""
    for step, bound in (("sure", -0.1), ("likely", -1.0), ("open", -3.0)):
        if logprob >= bound:
            return step
    return "rare"


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
