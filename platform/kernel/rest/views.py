"""The base of every REST view: the caller's tenant is in scope for as long as the view runs."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, ClassVar, TypeVar, cast

from django.db.models import Model, QuerySet
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from kernel.errors import InvalidInput, NotFound
from kernel.rest.caller import Access, RestCaller
from kernel.rest.reading import read
from kernel.rest.throttle import CallerThrottle
from kernel.tenancy import tenant_scope

M = TypeVar("M", bound=Model)
View = Callable[..., Response]
LONGEST_IDEMPOTENCY_KEY = 255
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": LONGEST_IDEMPOTENCY_KEY},
    OpenApiParameter.HEADER,
    description="The same wish again, under the same key, answers with what the first one made.",
)


class ScopedView(APIView):
    """A view of one tenant's rows. Whatever it reads, another tenant's things do not exist for it."""

    needs: ClassVar[Access | dict[str, Access]] = Access.OWN
    """What each action asks for, "*" for the rest; nothing said is for owners."""

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Run the view; the tenant that `initial` puts in scope leaves it with the view."""
        with ExitStack() as self._scopes:
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Enter the caller's tenant before anything else is checked."""
        self.perform_authentication(request)
        if isinstance(request.auth, RestCaller):
            self._scopes.enter_context(tenant_scope(request.auth.tenant_id))
        super().initial(request, *args, **kwargs)

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Response:
        """Say what is left of the caller's rate limit."""
        finished = super().finalize_response(request, response, *args, **kwargs)
        window = getattr(request, "rate_window", None)
        if isinstance(window, CallerThrottle):
            window.describe(finished)
        return finished

    @property
    def caller(self) -> RestCaller:
        """Who asks."""
        return cast("RestCaller", self.request.auth)

    @property
    def idempotency_key(self) -> str | None:
        """The request's `Idempotency-Key`, or None; raise InvalidInput for one that is too long to keep."""
        key = self.request.headers.get("Idempotency-Key")
        if key is not None and not 1 <= len(key) <= LONGEST_IDEMPOTENCY_KEY:
            raise InvalidInput(
                f"An idempotency key has 1 to {LONGEST_IDEMPOTENCY_KEY} characters.", field="Idempotency-Key"
            )
        return key


class ScopedViewSet(ScopedView, GenericViewSet[M]):
    """Lists and shows rows; a subclass says which (`rows`), how (`serializer_class`) and what changes them."""

    lookup_value_converter = "uuid"

    def rows(self) -> QuerySet[M]:
        """Return the rows that exist for the caller."""
        raise NotImplementedError

    def get_queryset(self) -> QuerySet[M]:
        """Return `rows()`; none while the schema is being written, when nobody asks."""
        if getattr(self, "swagger_fake_view", False):
            serializer = cast("Any", self.get_serializer_class())
            model: type[M] = serializer.Meta.model
            return QuerySet(model).none()
        return self.rows()

    def list(self, request: Request) -> Response:
        """List them, newest first."""
        del request
        rows = self.filter_queryset(self.get_queryset())
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def retrieve(self, request: Request, pk: Any = None) -> Response:
        """Show one."""
        del request, pk
        return Response(self.get_serializer(self.get_object()).data)

    def get_object(self) -> M:
        """Return the row that the address names; raise NotFound."""
        row = self.filter_queryset(self.get_queryset()).filter(pk=self.kwargs["pk"]).first()
        if row is None:
            raise NotFound("There is no such thing here.")
        return row

    def body(self, serializer: type[BaseSerializer[Any]]) -> dict[str, Any]:
        """Return the request's body as `serializer` reads it; a body that breaks its rules is a 400."""
        return read(serializer(data=self.request.data))


@extend_schema(exclude=True)
class Nowhere(APIView):
    """Every address that nothing stands at: not found, in the shape of all refusals, whoever asks."""

    authentication_classes = ()
    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse."""
        raise NotFound("There is no such address.")
