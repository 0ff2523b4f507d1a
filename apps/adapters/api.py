"""REST: policies, the versions of their adapters, and which one is live."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from apps.accounts.models import Tenant
from apps.adapters import services
from apps.adapters.models import POLICY_NAME, AdapterVersion, GateResult, PointerMove, Policy, VersionState
from apps.adapters.selectors import version_of
from kernel.rest.caller import Access
from kernel.rest.filters import MomentFilter
from kernel.rest.views import ScopedViewSet


class PolicySerializer(serializers.ModelSerializer[Policy]):
    """What a tenant calls a model."""

    live_version = serializers.IntegerField(
        source="live.number", default=0, read_only=True, help_text="0 is the bare base."
    )

    class Meta:
        model = Policy
        fields = [
            *("id", "name", "base_model", "live_version", "temperature", "training_enabled", "config"),
            *("config_number", "created_at"),
        ]
        read_only_fields = fields


class NewPolicySerializer(serializers.Serializer[Any]):
    """A policy to be made."""

    name = serializers.RegexField(POLICY_NAME, max_length=60)


class PolicyChangeSerializer(serializers.Serializer[Any]):
    """What may be changed of a policy; what is left out stays."""

    temperature = serializers.FloatField(min_value=0, max_value=2, required=False)
    training_enabled = serializers.BooleanField(required=False)


class PointerSerializer(serializers.Serializer[Any]):
    """Which version is to answer."""

    version = serializers.IntegerField(min_value=0, max_value=2**31 - 1, help_text="0 is the bare base.")
    reason = serializers.CharField(max_length=400, required=False, default="", allow_blank=True)


class PoliciesApi(ScopedViewSet[Policy]):
    """Policies of the tenant."""

    needs = {"list": Access.VIEW, "retrieve": Access.VIEW, "*": Access.MANAGE}
    of_policy = "id"
    waits = frozenset({"point"})
    serializer_class = PolicySerializer

    def rows(self) -> QuerySet[Policy]:
        """Return the tenant's policies."""
        return Policy.objects.select_related("live")

    @extend_schema(request=NewPolicySerializer, responses={201: PolicySerializer})
    def create(self, request: Any) -> Response:
        """Make a policy that answers from the bare base."""
        del request
        policy = services.create_policy(
            tenant=Tenant.objects.get(pk=self.caller.tenant_id),
            actor=self.caller.actor,
            **self.body(NewPolicySerializer),
        )
        return Response(PolicySerializer(policy).data, status=201)

    @extend_schema(request=PolicyChangeSerializer, responses=PolicySerializer)
    def partial_update(self, request: Any, pk: Any = None) -> Response:
        """Change how it answers where the client says nothing, or whether it learns."""
        del request, pk
        policy = services.change_policy(
            policy_id=self.get_object().pk, actor=self.caller.actor, **self.body(PolicyChangeSerializer)
        )
        return Response(PolicySerializer(policy).data)

    @extend_schema(request=PointerSerializer, responses=PolicySerializer)
    @action(detail=True, methods=["post"])
    def point(self, request: Any, pk: Any = None) -> Response:
        """Let it answer from another ready version from the next request on: promote or roll back."""
        del request, pk
        policy = self.get_object()
        asked = self.body(PointerSerializer)
        version = version_of(policy, asked["version"])
        moved = services.move_pointer(
            policy_id=policy.pk,
            to_version_id=version.pk if version else None,
            actor=self.caller.actor,
            reason=asked["reason"] or f"asked for by {self.caller.actor}",
        )
        return Response(PolicySerializer(moved.policy).data)


class GateSerializer(serializers.ModelSerializer[GateResult]):
    """What a check said of a version."""

    check = serializers.CharField(source="check_name")

    class Meta:
        model = GateResult
        fields = ["check", "passed", "detail"]


class VersionSerializer(serializers.ModelSerializer[AdapterVersion]):
    """An immutable adapter."""

    policy = serializers.UUIDField(source="policy_id")
    parent_version = serializers.IntegerField(
        source="parent.number",
        default=0,
        help_text="The version that it was a step from; 0 is the bare base.",
    )
    run = serializers.UUIDField(source="run_id", help_text="The training run that made it.")
    gates = GateSerializer(source="gate_results", many=True)

    class Meta:
        model = AdapterVersion
        fields = [
            *("id", "policy", "number", "parent_version", "depth", "served_name", "sha256", "rank", "alpha"),
            *("state", "reason", "run", "metrics", "gates", "created_at", "ready_at"),
        ]
        read_only_fields = fields


class VersionFilter(django_filters.FilterSet):
    """Versions of one policy, or in one state."""

    policy = django_filters.UUIDFilter(field_name="policy_id")
    state = django_filters.ChoiceFilter(choices=VersionState.choices)

    class Meta:
        model = AdapterVersion
        fields = ["policy", "state"]


class VersionsApi(ScopedViewSet[AdapterVersion]):
    """Versions of the tenant's policies."""

    needs = {"*": Access.VIEW}
    of_policy = "policy_id"
    serializer_class = VersionSerializer
    filterset_class = VersionFilter

    def rows(self) -> QuerySet[AdapterVersion]:
        """Return the tenant's versions."""
        return AdapterVersion.objects.select_related("parent").prefetch_related("gate_results")


class MoveSerializer(serializers.ModelSerializer[PointerMove]):
    """A move of a policy's live pointer: from then on another version answered."""

    policy = serializers.UUIDField(source="policy_id")
    from_version = serializers.IntegerField(
        source="from_version.number", default=0, help_text="0 is the bare base."
    )
    to_version = serializers.IntegerField(
        source="to_version.number", default=0, help_text="0 is the bare base."
    )

    class Meta:
        model = PointerMove
        fields = ["id", "policy", "from_version", "to_version", "actor", "reason", "created_at"]
        read_only_fields = fields


class MoveFilter(django_filters.FilterSet):
    """Moves of one policy, or in a span of time."""

    policy = django_filters.UUIDFilter(field_name="policy_id")
    moved_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    moved_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = PointerMove
        fields = ["policy", "moved_after", "moved_before"]


class MovesApi(ScopedViewSet[PointerMove]):
    """Which version answered from when on: publishing, promotions, rollbacks."""

    needs = {"*": Access.VIEW}
    of_policy = "policy_id"
    serializer_class = MoveSerializer
    filterset_class = MoveFilter

    def rows(self) -> QuerySet[PointerMove]:
        """Return the moves of the tenant's policies."""
        return PointerMove.objects.select_related("from_version", "to_version")
