"""REST: the tenant, and who belongs to it."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from apps.accounts import services
from apps.accounts.models import Membership, Role, Tenant
from kernel.rest.caller import Access
from kernel.rest.reading import read
from kernel.rest.views import ScopedView, ScopedViewSet


class TenantSerializer(serializers.ModelSerializer[Tenant]):
    """A customer."""

    name = serializers.CharField(max_length=120, required=False)
    training_enabled = serializers.BooleanField(
        required=False, help_text="Off: turns are stored, never trained on."
    )

    class Meta:
        model = Tenant
        fields = ["id", "slug", "name", "training_enabled", "paused_at", "pause_reason", "created_at"]
        read_only_fields = ["id", "slug", "paused_at", "pause_reason", "created_at"]


class TenantApi(ScopedView):
    """The caller's tenant."""

    needs = {"*": Access.VIEW}
    serializer_class = TenantSerializer

    def get(self, request: Any) -> Response:
        """Show the tenant that the key belongs to, or that `X-Tenant` names."""
        del request
        return Response(TenantSerializer(self._tenant()).data)

    def patch(self, request: Any) -> Response:
        """Change its name, or whether its turns are trained on."""
        self.caller.require(Access.MANAGE)
        asked = TenantSerializer(self._tenant(), data=request.data, partial=True)
        tenant = services.change_tenant(
            tenant_id=self.caller.tenant_id, actor=self.caller.actor, **read(asked)
        )
        return Response(TenantSerializer(tenant).data)

    def _tenant(self) -> Tenant:
        return Tenant.objects.get(pk=self.caller.tenant_id)


class MemberSerializer(serializers.ModelSerializer[Membership]):
    """A person's place in the tenant."""

    email = serializers.EmailField(source="user.email", read_only=True)
    user = serializers.UUIDField(source="user_id", read_only=True)

    class Meta:
        model = Membership
        fields = ["id", "user", "email", "role", "created_at"]
        read_only_fields = ["id", "created_at"]


class RoleSerializer(serializers.Serializer[Any]):
    """What a member may do."""

    role = serializers.ChoiceField(choices=Role.choices)


class MembersApi(ScopedViewSet[Membership]):
    """Who belongs to the tenant."""

    needs = {"list": Access.TALK, "retrieve": Access.TALK}
    serializer_class = MemberSerializer

    def rows(self) -> QuerySet[Membership]:
        """Return the tenant's members."""
        return Membership.objects.select_related("user")

    @extend_schema(request=RoleSerializer, responses=MemberSerializer)
    def partial_update(self, request: Any, pk: Any = None) -> Response:
        """Change what a member may do. The last owner stays one."""
        del request, pk
        role = Role(self.body(RoleSerializer)["role"])
        member = services.change_role(
            tenant_id=self.caller.tenant_id,
            membership_id=self.get_object().pk,
            role=role,
            actor=self.caller.actor,
        )
        return Response(MemberSerializer(member).data)

    def destroy(self, request: Any, pk: Any = None) -> Response:
        """Take a member out of the tenant; their keys end with it. The last owner stays."""
        del request, pk
        services.remove_member(
            tenant_id=self.caller.tenant_id, membership_id=self.get_object().pk, actor=self.caller.actor
        )
        return Response(status=204)
