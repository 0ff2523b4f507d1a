"""REST: keys. The text of one is in the answer that makes it, and nowhere after."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from apps.accounts.models import Tenant, User
from apps.keys import services
from apps.keys.limiting import MOST_POLICIES
from apps.keys.models import LONGEST_NAME, ApiKey, KeyScope, Limit
from apps.keys.selectors import effective, with_roles
from apps.keys.tenant_limit import own_limit, set_own_limit
from kernel.rest.caller import Access
from kernel.rest.reading import read
from kernel.rest.views import ScopedView, ScopedViewSet

LONGEST_OVERLAP_S = 30 * 86_400


class LimitSerializer(serializers.ModelSerializer[Limit]):
    """What a key may ask; null is the platform's default, 0 no limit."""

    class Meta:
        model = Limit
        fields = ["requests_per_minute", "tokens_per_minute", "concurrent"]
        extra_kwargs = {name: {"max_value": services.LARGEST_LIMIT, "allow_null": True} for name in fields}


class KeySerializer(serializers.ModelSerializer[ApiKey]):
    """A key without its secret."""

    prefix = serializers.CharField(source="__str__", read_only=True, help_text="What may be shown of it.")
    user = serializers.UUIDField(source="user_id", read_only=True)
    limit = LimitSerializer(read_only=True, allow_null=True, default=None)
    effective_scopes = serializers.SerializerMethodField(
        help_text="Those of its scopes that its person's role gives now; the others do not count."
    )
    policies = serializers.SerializerMethodField(
        help_text="Ids of the only policies that it may name; null: all of the tenant's."
    )

    class Meta:
        model = ApiKey
        fields = [
            *("id", "prefix", "name", "user", "scopes", "effective_scopes", "policies", "limit"),
            *("created_at", "expires_at", "revoked_at", "last_used_at"),
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.ListField(child=serializers.ChoiceField(choices=KeyScope.choices)))
    def get_effective_scopes(self, key: ApiKey) -> list[str]:
        """Return the scopes that count with the next request."""
        return effective(key)

    @extend_schema_field(serializers.ListField(child=serializers.UUIDField(), allow_null=True))
    def get_policies(self, key: ApiKey) -> list[str] | None:
        """Return the ids, sorted."""
        return sorted(str(one.policy_id) for one in key.policies.all()) if key.some_policies else None


class KeyPoliciesSerializer(serializers.Serializer[Any]):
    """Which policies a key may name."""

    policies = serializers.ListField(
        child=serializers.UUIDField(),
        min_length=1,
        max_length=MOST_POLICIES,
        allow_null=True,
        help_text="Ids; null: all of the tenant's, those to come too.",
    )


class NewKeySerializer(serializers.Serializer[Any]):
    """A key to be made."""

    name = serializers.CharField(max_length=LONGEST_NAME)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=KeyScope.choices), min_length=1, max_length=len(KeyScope)
    )
    expires_at = serializers.DateTimeField(required=False, allow_null=True, default=None)
    policies = serializers.ListField(
        child=serializers.UUIDField(),
        min_length=1,
        max_length=MOST_POLICIES,
        required=False,
        allow_null=True,
        default=None,
        help_text="Ids of the only policies that it may name; not for keys that manage. Of what it may read under /api it sees theirs alone.",
    )


class RotationSerializer(serializers.Serializer[Any]):
    """How a key hands over to its successor."""

    overlap_s = serializers.FloatField(
        min_value=0,
        max_value=LONGEST_OVERLAP_S,
        default=0.0,
        help_text="For how long the old one still works, seconds.",
    )


class SecretSerializer(serializers.Serializer[Any]):
    """A key that was just made."""

    key = KeySerializer()
    secret = serializers.CharField(help_text="The key's whole text. It is not shown again.")


class TenantLimitsApi(ScopedView):
    """What all of the tenant's keys together may ask."""

    needs = {"*": Access.MANAGE}
    serializer_class = LimitSerializer

    @extend_schema(responses=LimitSerializer)
    def get(self, request: Any) -> Response:
        """Show what the tenant asks of itself; null is as much as the platform lets it."""
        del request
        return Response(LimitSerializer(own_limit(self.caller.tenant_id) or Limit()).data)

    @extend_schema(request=LimitSerializer, responses=LimitSerializer)
    def put(self, request: Any) -> Response:
        """Set it, from the next request on: lower than what the platform lets the tenant, never higher.

        A number that is not sent stays as it is.
        """
        limit = set_own_limit(
            tenant_id=self.caller.tenant_id,
            actor=self.caller.actor,
            numbers=read(LimitSerializer(data=request.data)),
        )
        return Response(LimitSerializer(limit).data)


class KeysApi(ScopedViewSet[ApiKey]):
    """Keys of the tenant: one's own, or everybody's for who manages it."""

    needs = {"*": Access.TALK, "limits": Access.MANAGE}
    serializer_class = KeySerializer

    def rows(self) -> QuerySet[ApiKey]:
        """Return the keys that the caller may see."""
        rows = with_roles(ApiKey.objects.select_related("limit").prefetch_related("policies"))
        return rows if self.caller.sees_everybody else rows.filter(user_id=self.caller.user_id)

    @extend_schema(request=NewKeySerializer, responses={201: SecretSerializer})
    def create(self, request: Any) -> Response:
        """Make a key of one's own."""
        del request
        asked = self.body(NewKeySerializer)
        key, secret = services.create_key(
            tenant=Tenant.objects.get(pk=self.caller.tenant_id),
            user=User.objects.get(pk=self.caller.user_id),
            actor=self.caller.actor,
            **asked,
        )
        return self._with_secret(key, secret)

    @extend_schema(request=RotationSerializer, responses={201: SecretSerializer})
    @action(detail=True, methods=["post"])
    def rotate(self, request: Any, pk: Any = None) -> Response:
        """Make a successor of one's own key with the same name, scopes, policies, limits and expiry."""
        del request, pk
        key, secret = services.rotate_key(
            tenant_id=self.caller.tenant_id,
            key_id=self.get_object().pk,
            user_id=self.caller.user_id,
            actor=self.caller.actor,
            **self.body(RotationSerializer),
        )
        return self._with_secret(key, secret)

    @extend_schema(request=None, responses=KeySerializer)
    @action(detail=True, methods=["post"])
    def revoke(self, request: Any, pk: Any = None) -> Response:
        """End a key: the next request with it is refused everywhere."""
        del request, pk
        key = services.revoke_key(
            tenant_id=self.caller.tenant_id, key_id=self.get_object().pk, actor=self.caller.actor
        )
        return self._shown(key)

    @extend_schema(request=KeyPoliciesSerializer, responses=KeySerializer)
    @action(detail=True, methods=["put"])
    def policies(self, request: Any, pk: Any = None) -> Response:
        """Limit a key to some policies, or to none, from its next request on."""
        del request, pk
        key = services.set_policies(
            tenant_id=self.caller.tenant_id,
            key_id=self.get_object().pk,
            actor=self.caller.actor,
            **self.body(KeyPoliciesSerializer),
        )
        return self._shown(key)

    @extend_schema(request=LimitSerializer, responses=LimitSerializer)
    @action(detail=True, methods=["put"])
    def limits(self, request: Any, pk: Any = None) -> Response:
        """Set what a key may ask from its next request on."""
        del request, pk
        limit = services.set_limit(
            tenant_id=self.caller.tenant_id,
            key_id=self.get_object().pk,
            actor=self.caller.actor,
            **self.body(LimitSerializer),
        )
        return Response(LimitSerializer(limit).data)

    def _shown(self, key: ApiKey) -> Response:
        return Response(KeySerializer(self.rows().get(pk=key.pk)).data)

    def _with_secret(self, key: ApiKey, secret: str) -> Response:
        made = {"key": self.rows().get(pk=key.pk), "secret": secret}
        return Response(SecretSerializer(made).data, status=201)
