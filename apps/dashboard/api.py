"""REST: saved views of the sessions' list."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from apps.conversations.models import TurnKind
from apps.dashboard.models import LONGEST_NAME, SavedView
from apps.dashboard.saved import services
from apps.dashboard.saved.filters import JUDGED, LONGEST_PERSON, WITHIN
from apps.dashboard.saved.selectors import views_for
from kernel.rest.caller import Access
from kernel.rest.reading import SomethingSaid
from kernel.rest.views import ScopedViewSet


class ViewFiltersSerializer(SomethingSaid):
    """What a view narrows the list to; at least one of these."""

    policy = serializers.UUIDField(required=False)
    kind = serializers.ChoiceField(choices=TurnKind.choices, required=False)
    judged = serializers.ChoiceField(
        choices=[*JUDGED.items()],
        required=False,
        help_text="With a reply that a judge or a person called so.",
    )
    within = serializers.ChoiceField(
        choices=[*WITHIN.items()], required=False, help_text="Begun so long ago at most, from now back."
    )
    person = serializers.CharField(
        max_length=LONGEST_PERSON, required=False, help_text="An end user: OpenAI's `user`."
    )


class ViewSerializer(serializers.ModelSerializer[SavedView]):
    """Filters of the sessions' list under a name."""

    user = serializers.UUIDField(source="user_id", help_text="Who made it.")
    shared = serializers.BooleanField(help_text="For everybody who sees sessions; else its maker's own.")
    filters = serializers.SerializerMethodField(
        help_text="As stored: a policy may be gone since, and is left out where the view is shown."
    )

    class Meta:
        model = SavedView
        fields = ["id", "name", "user", "shared", "filters", "created_at"]
        read_only_fields = fields

    @extend_schema_field(ViewFiltersSerializer)
    def get_filters(self, view: SavedView) -> dict[str, str]:
        """Return the filters by name."""
        person = {} if view.end_user is None else {"person": view.end_user.external_id}
        return {**view.filters, **person}


class NewViewSerializer(serializers.Serializer[Any]):
    """A view to be saved."""

    name = serializers.CharField(max_length=LONGEST_NAME)
    filters = ViewFiltersSerializer()
    shared = serializers.BooleanField(required=False, default=False, help_text="For owners and admins.")


class ViewChangeSerializer(SomethingSaid):
    """What may be changed of a view; what is left out stays."""

    name = serializers.CharField(max_length=LONGEST_NAME, required=False)
    filters = ViewFiltersSerializer(required=False, help_text="All of them: those that are there now go.")
    shared = serializers.BooleanField(required=False, help_text="Only who made a view takes it back.")


class ViewsApi(ScopedViewSet[SavedView]):
    """Saved views: one's own and the shared ones. Those of other members do not exist for the caller."""

    needs = {"*": Access.TALK}
    serializer_class = ViewSerializer

    def rows(self) -> QuerySet[SavedView]:
        """Return the caller's own views and the shared ones."""
        return views_for(self.caller.user_id)

    @extend_schema(request=NewViewSerializer, responses={201: ViewSerializer})
    def create(self, request: Any) -> Response:
        """Save a view, one's own or (owners and admins) shared."""
        del request
        asked = self.body(NewViewSerializer)
        view = services.save_view(keeper=self._keeper(), **(asked | {"filters": _plain(asked["filters"])}))
        return Response(ViewSerializer(view).data, status=201)

    @extend_schema(request=ViewChangeSerializer, responses=ViewSerializer)
    def partial_update(self, request: Any, pk: Any = None) -> Response:
        """Rename it, let it stand for other filters, share it or take it back."""
        del request, pk
        view_id, asked = self.get_object().pk, self.body(ViewChangeSerializer)
        if "filters" in asked:
            asked["filters"] = _plain(asked["filters"])
        view = services.change_view(keeper=self._keeper(), view_id=view_id, **asked)
        return Response(ViewSerializer(view).data)

    @extend_schema(request=None, responses={204: None})
    def destroy(self, request: Any, pk: Any = None) -> Response:
        """Delete it; a shared one is gone for everybody."""
        del request, pk
        services.delete_view(keeper=self._keeper(), view_id=self.get_object().pk)
        return Response(status=204)

    def _keeper(self) -> services.Keeper:
        caller = self.caller
        return services.Keeper(
            caller.tenant_id, caller.user_id, caller.actor, manages=caller.access >= Access.MANAGE
        )


def _plain(filters: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in filters.items()}
