"""REST: by which rules a tenant's turns are judged."""

import uuid
from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from apps.adapters.models import Policy
from apps.adapters.selectors import policy_of
from apps.judging.models import MAX_RUBRIC_CHARACTERS, MAX_VOTES, JudgeSettings, PersonalData, Rubric
from apps.judging.rules import Rules, rules_of, rules_of_tenant
from apps.judging.services import change_judging, write_rubric
from kernel.rest.caller import Access
from kernel.rest.reading import read
from kernel.rest.views import IN_THE_ADDRESS, ScopedView, ScopedViewSet

LARGEST_CAP = 10**15  # tokens of a day


class JudgeSettingsSerializer(serializers.Serializer[Any]):
    """How turns are judged; null is as one level above, what is left out stays."""

    votes = serializers.IntegerField(
        min_value=1, max_value=MAX_VOTES, required=False, allow_null=True, help_text="Votes of a judgement."
    )
    temperature = serializers.FloatField(
        min_value=0, max_value=2, required=False, allow_null=True, help_text="Of the judge model."
    )
    personal_data = serializers.ChoiceField(
        choices=PersonalData.choices,
        required=False,
        allow_null=True,
        help_text="What is done where personal data is found: nothing, judges and training never see it, "
        "or the turn is not trained on.",
    )


class TenantJudgeSettingsSerializer(JudgeSettingsSerializer):
    """As for a policy, with the cap, which is the tenant's."""

    daily_tokens = serializers.IntegerField(
        min_value=0,
        max_value=LARGEST_CAP,
        required=False,
        allow_null=True,
        help_text="The most that judging may cost a day (UTC), tokens read and written; 0 is no cap.",
    )


class RulesSerializer(serializers.Serializer[Any]):
    """What holds after every level was asked."""

    votes = serializers.IntegerField()
    temperature = serializers.FloatField()
    daily_tokens = serializers.IntegerField()
    personal_data = serializers.ChoiceField(choices=PersonalData.choices)
    rubric = serializers.CharField(help_text="Its text; empty: the built-in one.")


class PolicyJudgingSerializer(serializers.Serializer[Any]):
    """A policy's own judge settings, and what holds."""

    own = JudgeSettingsSerializer()
    holds = RulesSerializer()


class JudgingSerializer(serializers.Serializer[Any]):
    """The tenant's judge settings, and what holds for a policy without its own."""

    own = TenantJudgeSettingsSerializer()
    holds = RulesSerializer()


def _own(policy: Policy | None) -> dict[str, Any]:
    row = JudgeSettings.objects.filter(policy=policy).first() or JudgeSettings()
    return {
        "votes": row.votes,
        "temperature": row.temperature,
        "daily_tokens": row.daily_tokens,
        "personal_data": row.personal_data or None,
    }


class JudgingApi(ScopedView):
    """How the tenant's turns are judged."""

    needs = {"*": Access.VIEW}
    serializer_class = JudgingSerializer

    @extend_schema(responses=JudgingSerializer)
    def get(self, request: Any) -> Response:
        """Show the tenant's own judge settings, and what holds for a policy that has none."""
        del request
        return self._shown()

    @extend_schema(request=TenantJudgeSettingsSerializer, responses=JudgingSerializer)
    def patch(self, request: Any) -> Response:
        """Change them for the judgements that are asked for from now on."""
        self.caller.require(Access.MANAGE)
        asked = read(TenantJudgeSettingsSerializer(data=request.data))
        if asked:
            change_judging(
                tenant_id=self.caller.tenant_id,
                policy=None,
                changes=asked,
                actor=self.caller.actor,
            )
        return self._shown()

    def _shown(self) -> Response:
        rules: Rules = rules_of_tenant(self.caller.tenant_id)
        return Response(JudgingSerializer({"own": _own(None), "holds": rules}).data)


class PolicyJudgingApi(ScopedView):
    """How a policy's turns are judged."""

    needs = {"*": Access.VIEW}
    of_policy = IN_THE_ADDRESS
    serializer_class = PolicyJudgingSerializer

    @extend_schema(responses=PolicyJudgingSerializer)
    def get(self, request: Any, pk: uuid.UUID) -> Response:
        """Show a policy's own judge settings, and what holds with the tenant's and the platform's."""
        del request
        return self._shown(policy_of(pk))

    @extend_schema(request=JudgeSettingsSerializer, responses=PolicyJudgingSerializer)
    def patch(self, request: Any, pk: uuid.UUID) -> Response:
        """Change them for the judgements that are asked for from now on."""
        self.caller.require(Access.MANAGE)
        policy = policy_of(pk)
        asked = read(JudgeSettingsSerializer(data=request.data))
        if asked:
            change_judging(
                tenant_id=self.caller.tenant_id,
                policy=policy,
                changes=asked,
                actor=self.caller.actor,
            )
        return self._shown(policy)

    def _shown(self, policy: Policy) -> Response:
        shown = {"own": _own(policy), "holds": rules_of(policy)}
        return Response(PolicyJudgingSerializer(shown).data)


class RubricSerializer(serializers.ModelSerializer[Rubric]):
    """What replies are judged by. Never changed: the newest of a policy, else of the tenant, counts."""

    policy = serializers.UUIDField(source="policy_id", allow_null=True, help_text="null: all of them.")

    class Meta:
        model = Rubric
        fields = ["id", "number", "policy", "text", "actor", "created_at"]
        read_only_fields = fields


class NewRubricSerializer(serializers.Serializer[Any]):
    """A rubric to be judged by from now on."""

    policy = serializers.UUIDField(
        required=False, allow_null=True, default=None, help_text="null: all of them."
    )
    text = serializers.CharField(
        max_length=MAX_RUBRIC_CHARACTERS,
        allow_blank=True,
        help_text="Empty: back to one level above (for a policy the tenant's, for the tenant the built-in one).",
    )


class RubricFilter(django_filters.FilterSet):
    """Rubrics of one policy."""

    policy = django_filters.UUIDFilter(field_name="policy_id")

    class Meta:
        model = Rubric
        fields = ["policy"]


class RubricsApi(ScopedViewSet[Rubric]):
    """Rubrics of the tenant and its policies, every one that ever was."""

    needs = {"list": Access.VIEW, "retrieve": Access.VIEW, "*": Access.MANAGE}
    serializer_class = RubricSerializer
    filterset_class = RubricFilter

    def rows(self) -> QuerySet[Rubric]:
        """Return the tenant's rubrics."""
        return Rubric.objects.all()

    @extend_schema(request=NewRubricSerializer, responses={201: RubricSerializer})
    def create(self, request: Any) -> Response:
        """Write the rubric that counts from now on."""
        del request
        asked = self.body(NewRubricSerializer)
        rubric = write_rubric(
            tenant_id=self.caller.tenant_id,
            policy=policy_of(asked["policy"], field="policy") if asked["policy"] else None,
            text=asked["text"],
            actor=self.caller.actor,
        )
        return Response(RubricSerializer(rubric).data, status=201)
