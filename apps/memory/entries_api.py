"""REST: what people asked for, to see, add, change, pin and forget."""

from typing import Any

import django_filters
from django.core.validators import RegexValidator
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from apps.accounts.names import LONGEST_END_USER, NAME
from apps.adapters.selectors import policy_of
from apps.memory import services
from apps.memory.models import KEPT, Evidence, Preference
from apps.memory.selectors import tokens_saved, with_words
from apps.memory.text import LONGEST, SHORTEST
from kernel.rest.caller import Access
from kernel.rest.filters import TextFilter
from kernel.rest.reading import SomethingSaid
from kernel.rest.views import ScopedViewSet

EVIDENCE_SHOWN = 50
KEPT_CHOICES = [(state.value, state.label) for state in KEPT]


class MemorySerializer(serializers.ModelSerializer[Preference]):
    """One thing that one person wants of one policy's replies."""

    policy = serializers.UUIDField(source="policy_id")
    user = serializers.UUIDField(source="user_id")
    end_user = serializers.CharField(
        source="end_user.external_id", default=None, allow_null=True, help_text="OpenAI's `user`."
    )
    text = serializers.CharField(source="words", help_text="Empty once what it rests on was deleted.")
    state = serializers.ChoiceField(
        choices=KEPT_CHOICES, help_text="Told, learned by the weights, or replaced by what was said later."
    )
    evidence_count = serializers.IntegerField(help_text="Turns that said it.")
    superseded_by = serializers.UUIDField(source="superseded_by_id", allow_null=True)
    held_by = serializers.IntegerField(
        source="held_by.number",
        default=None,
        allow_null=True,
        help_text="The version that showed that it need not be told.",
    )
    first_seen = serializers.DateTimeField()
    last_seen = serializers.DateTimeField()

    class Meta:
        model = Preference
        fields = [
            *("id", "policy", "user", "end_user", "text", "state", "reason", "source", "pinned", "general"),
            *("revision", "evidence_count", "superseded_by", "held_by", "held_since", "first_seen"),
            *("last_seen", "created_at", "changed_at"),
        ]
        read_only_fields = fields


class EvidenceSerializer(serializers.ModelSerializer[Evidence]):
    """That a turn said it."""

    turn = serializers.UUIDField(source="turn_id")
    session = serializers.UUIDField(source="turn.session_id")

    class Meta:
        model = Evidence
        fields = ["turn", "session", "words", "created_at"]
        read_only_fields = fields


class MemoryDetailSerializer(MemorySerializer):
    """An entry with where it was said, and what not telling it any more has saved."""

    evidence = serializers.SerializerMethodField(help_text=f"The newest {EVIDENCE_SHOWN}.")
    tokens_saved = serializers.SerializerMethodField(help_text="Tokens of prompts since the weights hold it.")

    class Meta(MemorySerializer.Meta):
        fields = [*MemorySerializer.Meta.fields, "evidence", "tokens_saved"]
        read_only_fields = fields

    @extend_schema_field(EvidenceSerializer(many=True))
    def get_evidence(self, row: Preference) -> Any:
        """Return the turns that said it, newest first."""
        said = row.evidence.select_related("turn").only("words", "created_at", "turn_id", "turn__session_id")
        return EvidenceSerializer(said.order_by("-created_at", "-id")[:EVIDENCE_SHOWN], many=True).data

    def get_tokens_saved(self, row: Preference) -> int:
        """Return what not telling it has saved."""
        return tokens_saved(row)


class NewMemorySerializer(serializers.Serializer[Any]):
    """What the caller wants of a policy's replies."""

    policy = serializers.UUIDField()
    text = serializers.CharField(min_length=SHORTEST, max_length=LONGEST)
    pinned = serializers.BooleanField(required=False, default=False)
    end_user = serializers.CharField(
        max_length=LONGEST_END_USER,
        required=False,
        allow_null=True,
        default=None,
        trim_whitespace=False,
        validators=[RegexValidator(NAME, "Printable ASCII characters, no space around them.")],
        help_text="For one's end user of that name, as clients name them in `user`.",
    )


class MemoryChangeSerializer(SomethingSaid):
    """What may be changed of an entry; what is left out stays."""

    text = serializers.CharField(min_length=SHORTEST, max_length=LONGEST, required=False)
    pinned = serializers.BooleanField(
        required=False,
        help_text="Comes first, is told until it is unpinned, and nothing that is overheard replaces it.",
    )


class MemoryFilter(django_filters.FilterSet):
    """Entries of one policy, in one state, of one person."""

    policy = django_filters.UUIDFilter(field_name="policy_id")
    state = django_filters.ChoiceFilter(choices=KEPT_CHOICES)
    user = django_filters.UUIDFilter(field_name="user_id")
    end_user = TextFilter(field_name="end_user__external_id")

    class Meta:
        model = Preference
        fields = ["policy", "state", "user", "end_user"]


class MemoryApi(ScopedViewSet[Preference]):
    """One's own entries of memory, or everybody's for who manages the tenant."""

    needs = {"*": Access.TALK}
    of_policy = "policy_id"
    serializer_class = MemorySerializer
    filterset_class = MemoryFilter

    def rows(self) -> QuerySet[Any]:
        """Return the entries that the caller may see and change."""
        rows = Preference.objects.filter(state__in=KEPT)
        if not self.caller.sees_everybody:
            rows = rows.filter(user_id=self.caller.user_id)
        # looked up for the rows of the page: for a join, all names of a tenant are read
        return with_words(rows).select_related("held_by").prefetch_related("end_user")

    @extend_schema(responses=MemoryDetailSerializer)
    def retrieve(self, request: Any, pk: Any = None) -> Response:
        """Show one, with where it was said."""
        del request, pk
        return Response(MemoryDetailSerializer(self.get_object()).data)

    @extend_schema(request=NewMemorySerializer, responses={201: MemorySerializer})
    def create(self, request: Any) -> Response:
        """Keep what the caller wants; what is there already holds again, in these words. The next request is told of it."""
        del request
        asked = self.body(NewMemorySerializer)
        row = services.add_preference(
            policy_id=policy_of(asked["policy"], field="policy").pk,
            user_id=self.caller.user_id,
            end_user=asked["end_user"],
            text=asked["text"],
            pinned=asked["pinned"],
            actor=self.caller.actor,
        )
        return Response(MemorySerializer(self.rows().get(pk=row.pk)).data, status=201)

    @extend_schema(request=MemoryChangeSerializer, responses=MemorySerializer)
    def partial_update(self, request: Any, pk: Any = None) -> Response:
        """Change its words, or pin and unpin it. What is edited or pinned is told again."""
        del request, pk
        found, asked = self.get_object(), self.body(MemoryChangeSerializer)
        row = services.edit_preference(
            preference_id=found.pk,
            user_id=None if self.caller.sees_everybody else self.caller.user_id,
            text=asked.get("text"),
            pinned=asked.get("pinned"),
            actor=self.caller.actor,
        )
        return Response(MemorySerializer(self.rows().get(pk=row.pk)).data)

    @extend_schema(request=None, responses={204: None})
    def destroy(self, request: Any, pk: Any = None) -> Response:
        """Forget it: no prompt is told of it from the next request on, and its words are gone."""
        del request, pk
        services.delete_preference(
            preference_id=self.get_object().pk,
            user_id=None if self.caller.sees_everybody else self.caller.user_id,
            actor=self.caller.actor,
        )
        return Response(status=204)
