"""Turns with the exact tokens, what came next and what became of them. Reading one leaves an audit row."""

from django.contrib import admin
from django.utils.safestring import SafeString

from apps.console import show
from apps.console.admin.base import ConsoleAdmin
from apps.conversations.models import Turn
from apps.judging.models import Judgement
from apps.judging.reasons import explained
from apps.learning.models import Sample, SampleState

TOKENS_SHOWN = 512


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
