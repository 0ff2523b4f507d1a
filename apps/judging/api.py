"""REST: what judges said of turns."""

import django_filters
from django.db.models import QuerySet
from rest_framework import serializers

from apps.judging.models import Hint, Judgement, JudgementState, Vote
from kernel.rest.caller import Access
from kernel.rest.views import ScopedViewSet


class VoteSerializer(serializers.ModelSerializer[Vote]):
    """One answer of a judge."""

    class Meta:
        model = Vote
        fields = [
            *("attempt", "number", "prompt_version", "score", "text", "abstained_because", "latency_ms"),
            *("prompt_tokens", "tokens"),
        ]


class HintSerializer(serializers.ModelSerializer[Hint]):
    """What would have improved a reply."""

    class Meta:
        model = Hint
        fields = ["number", "text", "accepted", "reason"]


class JudgementSerializer(serializers.ModelSerializer[Judgement]):
    """One judging of one turn, with every vote."""

    turn = serializers.UUIDField(source="turn_id")
    rubric = serializers.IntegerField(
        source="rubric.number", default=None, allow_null=True, help_text="Its number; null: the built-in one."
    )
    votes = VoteSerializer(many=True)
    hints = HintSerializer(many=True)

    class Meta:
        model = Judgement
        fields = [
            *("id", "turn", "judge", "prompt_version", "rubric", "votes_asked", "temperature"),
            *("state", "reward", "source", "reason"),
            *("attempts", "votes", "hints", "created_at", "settled_at"),
        ]
        read_only_fields = fields


class JudgementFilter(django_filters.FilterSet):
    """Judgements of one turn, in one state, or with one reward."""

    turn = django_filters.UUIDFilter(field_name="turn_id")
    state = django_filters.ChoiceFilter(choices=JudgementState.choices)
    reward = django_filters.ChoiceFilter(choices=[(-1, "bad"), (0, "neutral"), (1, "good")])

    class Meta:
        model = Judgement
        fields = ["turn", "state", "reward"]


class JudgementsApi(ScopedViewSet[Judgement]):
    """Judgements of the turns that the caller may read."""

    needs = {"*": Access.TALK}
    of_policy = "turn__policy_id"
    serializer_class = JudgementSerializer
    filterset_class = JudgementFilter

    def rows(self) -> QuerySet[Judgement]:
        """Return the judgements that the caller may read."""
        rows = Judgement.objects.select_related("rubric").prefetch_related("votes", "hints")
        return rows if self.caller.sees_everybody else rows.filter(turn__session__user_id=self.caller.user_id)
