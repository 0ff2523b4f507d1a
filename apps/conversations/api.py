"""REST: sessions, turns, and what people said of them by hand."""

import math
import uuid
from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from apps.conversations.models import Feedback, Session, Turn, TurnKind, TurnState
from apps.conversations.selectors import with_turn_counts
from apps.conversations.services.feedback import give_feedback
from kernel.errors import NotFound
from kernel.rest.caller import Access
from kernel.rest.filters import MomentFilter, TextFilter
from kernel.rest.reading import SomethingSaid
from kernel.rest.views import ScopedViewSet

LONGEST_CORRECTION = 20_000


class SessionSerializer(serializers.ModelSerializer[Session]):
    """A conversation."""

    user = serializers.UUIDField(source="user_id")
    policy = serializers.UUIDField(source="policy_id")
    end_user = serializers.CharField(
        source="end_user.external_id", default=None, allow_null=True, help_text="OpenAI's `user`."
    )
    turns = serializers.IntegerField(source="n_turns")

    class Meta:
        model = Session
        fields = [
            *("id", "external_id", "user", "end_user", "policy", "kind", "turns"),
            *("created_at", "last_turn_at", "idle_at"),
        ]
        read_only_fields = fields


class SessionFilter(django_filters.FilterSet):
    """Sessions with one policy, of one kind, of one person, or begun in a span of time."""

    policy = django_filters.UUIDFilter(field_name="policy_id")
    kind = django_filters.ChoiceFilter(choices=TurnKind.choices)
    user = django_filters.UUIDFilter(field_name="user_id")
    end_user = TextFilter(field_name="end_user__external_id")
    external_id = TextFilter()
    begun_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    begun_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Session
        fields = ["policy", "kind", "user", "end_user", "external_id", "begun_after", "begun_before"]


class SessionsApi(ScopedViewSet[Session]):
    """One's own sessions, or everybody's for who manages the tenant."""

    needs = {"*": Access.TALK}
    of_policy = "policy_id"
    serializer_class = SessionSerializer
    filterset_class = SessionFilter

    def rows(self) -> QuerySet[Session]:
        """Return the sessions that the caller may read."""
        rows = with_turn_counts(Session.objects.select_related("end_user"))
        return rows if self.caller.sees_everybody else rows.filter(user_id=self.caller.user_id)


class TurnSummarySerializer(serializers.ModelSerializer[Turn]):
    """A turn in a list: everything but what was said."""

    session = serializers.UUIDField(source="session_id")
    previous = serializers.UUIDField(
        source="parent_id", allow_null=True, help_text="The turn that this one goes on from."
    )
    policy = serializers.UUIDField(source="policy_id")
    version = serializers.IntegerField(source="version.number", default=0, help_text="0 is the bare base.")

    class Meta:
        model = Turn
        fields = [
            *("id", "session", "previous", "policy", "version", "kind", "side", "state", "finish_reason"),
            *("usage", "error", "prompt_source", "prompt_reason", "first_token_ms", "latency_ms"),
            *("created_at", "completed_at", "next_state_at"),
        ]
        read_only_fields = fields


class TurnSerializer(TurnSummarySerializer):
    """A turn, whole: the messages, the exact tokens and what came next."""

    class Meta(TurnSummarySerializer.Meta):
        fields = [
            *TurnSummarySerializer.Meta.fields,
            *("messages", "tools", "reply", "next_state", "sampling", "template_kwargs"),
            *("prompt_ids", "output_ids", "output_logprobs", "spans"),
        ]
        read_only_fields = fields


class FeedbackSerializer(serializers.ModelSerializer[Feedback]):
    """What a person said of a turn by hand."""

    turn = serializers.UUIDField(source="turn_id")
    user = serializers.UUIDField(source="user_id")

    class Meta:
        model = Feedback
        fields = ["id", "turn", "user", "score", "correction", "created_at"]
        read_only_fields = fields


class NewFeedbackSerializer(SomethingSaid):
    """A score, a correction, or both."""

    score = serializers.ChoiceField(choices=[-1, 0, 1], required=False)
    correction = serializers.CharField(max_length=LONGEST_CORRECTION, required=False)


class TurnFilter(django_filters.FilterSet):
    """Turns of one session, with one policy, or in one state."""

    session = django_filters.UUIDFilter(field_name="session_id")
    policy = django_filters.UUIDFilter(field_name="policy_id")
    state = django_filters.ChoiceFilter(choices=TurnState.choices)
    kind = django_filters.ChoiceFilter(choices=TurnKind.choices)

    class Meta:
        model = Turn
        fields = ["session", "policy", "state", "kind"]


class TurnsApi(ScopedViewSet[Turn]):
    """Turns of the sessions that the caller may read."""

    needs = {"*": Access.TALK}
    of_policy = "policy_id"
    serializer_class = TurnSummarySerializer
    filterset_class = TurnFilter

    def rows(self) -> QuerySet[Turn]:
        """Return the turns that the caller may read; a list leaves out what was said."""
        rows = Turn.objects.select_related("version")
        if not self.caller.sees_everybody:
            rows = rows.filter(session__user_id=self.caller.user_id)
        if self.action == "list":
            rows = rows.defer(
                *("messages", "tools", "reply", "next_state", "sampling", "template_kwargs"),
                *("prompt_ids", "output_ids", "output_logprobs", "spans"),
            )
        return rows

    @extend_schema(responses=TurnSerializer)
    def retrieve(self, request: Any, pk: Any = None) -> Response:
        """Show one, whole."""
        del request, pk
        turn = self.get_object()
        # JSON has no NaN and no infinity
        turn.output_logprobs = [value if math.isfinite(value) else None for value in turn.output_logprobs]  # type: ignore[misc]
        return Response(TurnSerializer(turn).data)

    @extend_schema(request=NewFeedbackSerializer, responses={201: FeedbackSerializer})
    @action(detail=True, methods=["post"])
    def feedback(self, request: Any, pk: Any = None) -> Response:
        """Say what one thinks of a reply of one's own session; the newest word counts."""
        del request, pk
        turn, asked = self.get_object(), self.body(NewFeedbackSerializer)
        said = give_feedback(
            tenant_id=self.caller.tenant_id,
            user_id=self.caller.user_id,
            turn_id=turn.pk,
            score=asked.get("score"),
            correction=asked.get("correction", ""),
        )
        return Response(FeedbackSerializer(said).data, status=201)

    def again(self, made: uuid.UUID) -> Response:
        """What was said of a turn, which is all that is posted here."""
        said = Feedback.objects.filter(pk=made).first()
        if said is None:
            raise NotFound("There is no such feedback.")
        return Response(FeedbackSerializer(said).data)


class FeedbackFilter(django_filters.FilterSet):
    """Feedback on one turn."""

    turn = django_filters.UUIDFilter(field_name="turn_id")

    class Meta:
        model = Feedback
        fields = ["turn"]


class FeedbackApi(ScopedViewSet[Feedback]):
    """What people said of turns by hand."""

    needs = {"*": Access.TALK}
    of_policy = "turn__policy_id"
    serializer_class = FeedbackSerializer
    filterset_class = FeedbackFilter

    def rows(self) -> QuerySet[Feedback]:
        """Return the feedback that the caller may read."""
        rows = Feedback.objects.all()
        return rows if self.caller.sees_everybody else rows.filter(turn__session__user_id=self.caller.user_id)
