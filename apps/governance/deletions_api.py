"""REST: deletions of what was said, and what they had been learned from."""

import uuid
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.reverse import reverse

from apps.accounts.models import EndUser, Tenant
from apps.governance.erasure.requests import request_erasure
from apps.governance.erasure.subjects import Meant
from apps.governance.models import Erasure, LearnedFrom, Subject
from kernel.errors import NotFound
from kernel.rest.caller import Access
from kernel.rest.reading import SomethingSaid
from kernel.rest.views import ScopedViewSet


class LearnedFromSerializer(serializers.ModelSerializer[LearnedFrom]):
    """A version that had learned from what a deletion took: the rows are gone, the version is not."""

    policy = serializers.UUIDField(source="version.policy_id")
    version = serializers.UUIDField(source="version_id")
    number = serializers.IntegerField(source="version.number")
    served_name = serializers.CharField(source="version.served_name")

    class Meta:
        model = LearnedFrom
        fields = ["policy", "version", "number", "served_name", "samples"]
        read_only_fields = fields


class DeletionSerializer(serializers.ModelSerializer[Erasure]):
    """A deletion: what of, how far it is, what it took, and which versions had learned from that."""

    turns_gone = serializers.SerializerMethodField(help_text="Of `turns_total`, and of what came since.")
    deleted = serializers.SerializerMethodField(help_text="Rows that are gone, by kind.")
    learned_from = LearnedFromSerializer(source="learned", many=True)

    class Meta:
        model = Erasure
        fields = [
            *(
                "id",
                "subject",
                "subject_id",
                "older_than_days",
                "state",
                "actor",
                "turns_total",
                "turns_gone",
            ),
            *("deleted", "learned_from", "reason", "created_at", "finished_at"),
        ]
        read_only_fields = fields

    def get_turns_gone(self, row: Erasure) -> int:
        """Return how many turns are gone so far."""
        return int(row.deleted.get("turn", 0))

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}})
    def get_deleted(self, row: Erasure) -> dict[str, int]:
        """Return what is gone so far, by kind."""
        return dict(row.deleted)


class NewDeletionSerializer(SomethingSaid):
    """What is to be deleted, one of them."""

    session = serializers.UUIDField(
        required=False, help_text="A session, with what repeats its person's questions."
    )
    user = serializers.UUIDField(
        required=False, help_text="What a user said in sessions that name no end user, and their wishes."
    )
    end_user = serializers.CharField(
        max_length=200,
        required=False,
        help_text="What was said for an end user, as clients name them in `user`, and their wishes.",
    )
    everything = serializers.CharField(
        max_length=100,
        required=False,
        help_text="Everything that was said in the tenant: its slug, to confirm. For owners.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a body that names none of them, or several."""
        if len(attrs) > 1:
            raise serializers.ValidationError({sorted(attrs)[1]: "Name one thing to delete, not several."})
        return super().validate(attrs)


class NewDeletionScheme(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Says in the description that one thing is named."""

    target_class = "apps.governance.deletions_api.NewDeletionSerializer"
    priority = 1

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Return the schema of the fields, exactly one of them present."""
        described = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)  # noqa: SLF001  # as its own extensions do
        return {**described, "minProperties": 1, "maxProperties": 1}


class DeletionsApi(ScopedViewSet[Erasure]):
    """Deletions of a session, of what a person said, of everything, and by age: for owners and admins."""

    needs = {"*": Access.MANAGE}
    serializer_class = DeletionSerializer

    def rows(self) -> QuerySet[Erasure]:
        """Return the tenant's deletions."""
        return Erasure.objects.prefetch_related("learned__version")

    @extend_schema(request=NewDeletionSerializer, responses={202: DeletionSerializer})
    def create(self, request: Any) -> Response:
        """Have something deleted. No prompt is told of it from now on; the rest goes within seconds, in the background.

        `Location` names the deletion, which says how far it is. What versions have learned stays in them: `learned_from`
        says which those are. The same wish while one is under way answers with that one.
        """
        del request
        asked = self.body(NewDeletionSerializer)
        if "everything" in asked:
            self.caller.require(Access.OWN)
            slug = Tenant.objects.values_list("slug", flat=True).get(pk=self.caller.tenant_id)
            if asked["everything"] != slug:
                raise NotFound(f"This tenant is called {slug}: nothing was deleted.", field="everything")
        deletion = self._asked_for(_meant(asked), named=next(iter(asked)))
        return self._accepted(DeletionSerializer(deletion).data)

    def again(self, made: uuid.UUID) -> Response:
        """As the first time: accepted, and where it is."""
        return self._accepted(super().again(made).data)

    def _accepted(self, shown: Any) -> Response:
        place = reverse("api:deletions-detail", kwargs={"pk": shown["id"]}, request=self.request)
        return Response(shown, status=202, headers={"Location": place})

    def _asked_for(self, meant: Meant, *, named: str) -> Erasure:
        if meant.subject == Subject.END_USER and meant.id is None:
            raise NotFound("There is no such end user.", field=named)
        try:
            return request_erasure(
                tenant_id=self.caller.tenant_id,
                meant=meant,
                actor=self.caller.actor,
            )
        except NotFound as error:
            raise NotFound(error.message, field=named) from error


def _meant(asked: dict[str, Any]) -> Meant:
    """Return what a body names; an end user whom nobody knows (any more) has no id."""
    if "session" in asked:
        return Meant(Subject.SESSION, asked["session"])
    if "user" in asked:
        return Meant(Subject.MEMBER, asked["user"])
    if "end_user" in asked:
        known = EndUser.objects.filter(external_id=asked["end_user"]).values_list("pk", flat=True)
        return Meant(Subject.END_USER, known.first())
    return Meant(Subject.EVERYTHING)
