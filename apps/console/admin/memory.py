"""What people asked for, and how policies use it."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.console import show
from apps.console.admin.base import Act, ConsoleAdmin
from apps.memory.models import Lesson, MemorySetting, Preference, PreferenceState
from apps.memory.selectors import tokens_saved, with_words
from apps.memory.services import delete_preference
from kernel.ids import tail


def _delete(row: Preference, who: str, _why: str) -> str:
    delete_preference(preference_id=row.pk, user_id=None, actor=who)
    return "no prompt is told of it from the next request on."


@admin.register(Preference)
class PreferenceAdmin(ConsoleAdmin):
    """Preferences of people; their words show on the page of one."""

    fills = (
        "Who says in a conversation how replies should be leaves one (“Answer in French”), and so does who "
        "types one under Memory in the dashboard."
    )
    list_display = (
        "short_id",
        "tenant",
        "policy",
        "user",
        "end_user",
        "state_chip",
        "source",
        "evidence_seen",
        "pinned",
        "last_seen_at",
        "held_by_version",
    )
    list_select_related = ("tenant", "policy", "user", "end_user", "held_by")
    list_filter = ("state", "source", "pinned", "tenant", "policy")
    search_fields = ("=id", "user__email", "=end_user__external_id", "tenant__slug")
    ordering = ("-id",)
    fields = (
        "tenant",
        "policy",
        "user",
        "end_user",
        "text",
        "state_chip",
        "reason",
        "source",
        "topics",
        "general",
        "pinned",
        "evidence_seen",
        "created_at",
        "last_seen_at",
        "revision",
        "superseded_by",
        "held_by_version",
        "held_since",
        "saved",
    )
    holds_text = True
    acts = (
        Act(
            "delete",
            "Delete the preference",
            lambda row: (
                f"The preference {tail(row.pk)} of {row.end_user or row.user} leaves every prompt of {row.tenant} / "
                f"{row.policy} from the next request on, and its words are gone for good."
            ),
            _delete,
            lambda row: row.state != PreferenceState.DELETED,
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add the words and the evidence."""
        return with_words(super().get_queryset(request))

    @admin.display(description="preference")
    def short_id(self, row: Preference) -> SafeString:
        """Return the id, cut."""
        return show.short(row.pk)

    @admin.display(description="in their words")
    def text(self, row: Any) -> str:
        """Return what is told."""
        return row.words or "gone"

    @admin.display(description="state")
    def state_chip(self, row: Preference) -> SafeString:
        """Return its state."""
        return show.chip(row.state)

    @admin.display(description="evidence")
    def evidence_seen(self, row: Any) -> int:
        """Return how many turns said it."""
        count: int = row.evidence_count
        return count

    @admin.display(description="last seen")
    def last_seen_at(self, row: Any) -> str:
        """Return when it was last said."""
        return show.moment(row.last_seen)

    @admin.display(description="prompt tokens saved")
    def saved(self, row: Any) -> int:
        """Return what not telling it has saved since the weights hold it."""
        return tokens_saved(row)

    @admin.display(description="held by")
    def held_by_version(self, row: Preference) -> SafeString | str:
        """Return the version that does without being told."""
        return show.version(row.held_by) if row.held_by is not None else "-"


@admin.register(MemorySetting)
class MemorySettingAdmin(ConsoleAdmin):
    """How policies use memory, where it is not as the platform does."""

    fills = (
        "Without a row the platform's settings hold (MEMORY_BUDGET_TOKENS, SHADOW_ENABLED and their kin). Owners "
        "and admins of a tenant write one on the page of a policy's settings, or by PATCH /api/policies/{id}/memory."
    )
    list_display = ("policy", "tenant", "in_prompt", "budget_tokens", "shadow", "shadow_tokens_per_day")
    list_select_related = ("tenant", "policy")
    list_filter = ("in_prompt", "shadow", "tenant")
    fields = (*list_display, "shadow_from_hour", "shadow_until_hour")

    def called(self, row: MemorySetting) -> str:
        """Say whose they are."""
        return f"memory of {row.policy}"


@admin.register(Lesson)
class LessonAdmin(ConsoleAdmin):
    """What weights are taught in quiet minutes, and how far they are."""

    fills = (
        "One begins in quiet minutes for a person who has a preference, where SHADOW_ENABLED is on. Tell a "
        "policy what you want, and leave it alone for a while."
    )
    list_display = (
        "policy",
        "tenant",
        "user",
        "end_user",
        "state_chip",
        "reason",
        "best_version",
        "best_score",
        "without_gain",
        "changed_at",
    )
    list_select_related = ("tenant", "policy", "user", "end_user", "best")
    list_filter = ("state", "tenant", "policy")
    ordering = ("-id",)
    fields = (*list_display, "created_at", "entries_json", "figures_json")

    def called(self, row: Lesson) -> str:
        """Say whose it is."""
        return f"lesson of {row.policy} for {row.end_user or row.user}"

    @admin.display(description="state")
    def state_chip(self, row: Lesson) -> SafeString:
        """Return its state."""
        return show.chip(row.state)

    @admin.display(description="best version")
    def best_version(self, row: Lesson) -> SafeString | str:
        """Return the version that does best without being told."""
        return show.version(row.best) if row.best is not None else "-"

    @admin.display(description="preferences")
    def entries_json(self, row: Lesson) -> SafeString:
        """Return what is taught."""
        return show.as_json(row.entries)

    @admin.display(description="figures")
    def figures_json(self, row: Lesson) -> SafeString:
        """Return what versions measured."""
        # the teacher's replies are what people's words were answered with
        return show.as_json({name: value for name, value in row.figures.items() if name != "replies"})
