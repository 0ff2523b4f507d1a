"""REST: who takes no part in training."""

import uuid
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from apps.accounts.models import EndUser
from apps.judging.models import OptOut
from apps.learning.opting_out import opt_in, opt_out
from kernel.errors import InvalidInput, NotFound
from kernel.rest.caller import Access
from kernel.rest.views import ScopedViewSet


class OptOutSerializer(serializers.ModelSerializer[OptOut]):
    """A person whose turns teach nothing."""

    user = serializers.UUIDField(source="user_id", allow_null=True)
    end_user = serializers.CharField(
        source="end_user.external_id",
        default=None,
        allow_null=True,
        help_text="As clients name them in `user`.",
    )

    class Meta:
        model = OptOut
        fields = ["id", "user", "end_user", "actor", "created_at", "ended_at"]
        read_only_fields = fields


class NewOptOutSerializer(serializers.Serializer[Any]):
    """Who is to take no part: a user of the tenant or an end user, one of them."""

    user = serializers.UUIDField(required=False, allow_null=True, default=None)
    end_user = serializers.CharField(
        max_length=200,
        required=False,
        allow_null=True,
        default=None,
        help_text="As clients name them in `user`.",
    )


class OptOutsApi(ScopedViewSet[OptOut]):
    """People whose turns teach nothing. Members see and say it of themselves, who manages the tenant of everybody."""

    needs = {"*": Access.TALK}
    serializer_class = OptOutSerializer

    def rows(self) -> QuerySet[OptOut]:
        """Return the opt-outs that the caller may see, ended ones too."""
        # looked up for the rows of the page: for a join, all names of a tenant are read
        rows = OptOut.objects.prefetch_related("end_user")
        return rows if self.caller.sees_everybody else rows.filter(user_id=self.caller.user_id)

    @extend_schema(request=NewOptOutSerializer, responses={201: OptOutSerializer})
    def create(self, request: Any) -> Response:
        """Take a person out from now on; what of theirs waits is set aside. What steps have learned stays."""
        del request
        asked = self.body(NewOptOutSerializer)
        if (asked["user"] is None) == (asked["end_user"] is None):
            raise InvalidInput("Name a `user` or an `end_user`, one of them.", field="user")
        if asked["user"] != self.caller.user_id:
            self.caller.require(Access.MANAGE)
        row = opt_out(
            tenant_id=self.caller.tenant_id,
            actor=self.caller.actor,
            user_id=asked["user"],
            end_user_id=_end_user(asked["end_user"]) if asked["end_user"] is not None else None,
        )
        return Response(OptOutSerializer(row).data, status=201)

    @extend_schema(request=None, responses={204: None})
    def destroy(self, request: Any, pk: Any = None) -> Response:
        """Let the person's turns from now on teach again; what was said before stays out.

        It stays to be read, with when it ended. Of one that has ended nothing more ends: who is out again stays out.
        """
        del request, pk
        opt_in(row=self.get_object(), actor=self.caller.actor)
        return Response(status=204)


def _end_user(external_id: str) -> uuid.UUID:
    row = EndUser.objects.filter(external_id=external_id).first()
    if row is None:
        raise NotFound("There is no such end user.", field="end_user")
    return row.pk
