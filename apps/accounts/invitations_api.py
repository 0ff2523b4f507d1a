"""REST: who has been asked to join the tenant."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.reverse import reverse

from apps.accounts import invitations
from apps.accounts.models import Invitation, Role, Tenant, User
from kernel.rest.caller import Access
from kernel.rest.views import ScopedViewSet


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    """Somebody who was asked to join and has not yet. The link stands in their mail alone."""

    inviter = serializers.UUIDField(source="inviter_id")
    stands = serializers.BooleanField(help_text="Whether its inviter may still ask somebody in as that.")

    class Meta:
        model = Invitation
        fields = ["id", "email", "role", "inviter", "stands", "created_at", "expires_at"]
        read_only_fields = fields


class NewInvitationSerializer(serializers.Serializer[Any]):
    """Who is to be asked, and what they may do then."""

    email = serializers.EmailField(max_length=invitations.LONGEST_ADDRESS)
    role = serializers.ChoiceField(choices=Role.choices, help_text="Not above one's own.")


class InvitationsApi(ScopedViewSet[Invitation]):
    """Open invitations, of which an expired one is one that can be sent anew."""

    needs = {"*": Access.MANAGE}
    serializer_class = InvitationSerializer

    def rows(self) -> QuerySet[Invitation]:
        """Return the tenant's open invitations."""
        return Invitation.objects.filter(accepted_at=None).annotate(stands=invitations.stands())

    @extend_schema(request=NewInvitationSerializer, responses={201: InvitationSerializer})
    def create(self, request: Any) -> Response:
        """Write to somebody with a link to join, good for a week; asked again, the old link ends and a new one is sent."""
        asked = self.body(NewInvitationSerializer)
        link: str = reverse("dashboard:invitation", kwargs={"token": "TOKEN"}, request=request)
        invitation = invitations.invite(
            tenant=Tenant.objects.get(pk=self.caller.tenant_id),
            email=asked["email"],
            role=Role(asked["role"]),
            inviter=User.objects.get(pk=self.caller.user_id),
            link=link.replace("TOKEN", "{token}"),
        )
        return Response(InvitationSerializer(self.rows().get(pk=invitation.pk)).data, status=201)

    @extend_schema(request=None, responses={204: None})
    def destroy(self, request: Any, pk: Any = None) -> Response:
        """Take an invitation back: its link does nothing any more."""
        del request, pk
        invitations.take_back(
            tenant_id=self.caller.tenant_id, invitation_id=self.get_object().pk, actor=self.caller.actor
        )
        return Response(status=204)
