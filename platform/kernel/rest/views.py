"""The base of every REST view: the caller's tenant is in scope for as long as the view runs."""

import uuid
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, ClassVar, TypeVar, cast

from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from kernel.errors import Conflict, Forbidden, NotFound
from kernel.models import Wish
from kernel.rest import wishes
from kernel.rest.caller import Access, RestCaller
from kernel.rest.reading import read
from kernel.rest.throttle import CallerThrottle
from kernel.rest.wishes import Asked
from kernel.tenancy import tenant_scope

M = TypeVar("M", bound=Model)
IN_THE_ADDRESS = "pk in the address"
"""For `of_policy`: what the address names is the policy."""
View = Callable[..., Response]


class ScopedView(APIView):
    """A view of one tenant's rows. Whatever it reads, another tenant's things do not exist for it."""

    needs: ClassVar[Access | dict[str, Access]] = Access.OWN
    """What each action asks for, "*" for the rest; nothing said is for owners."""
    of_policy: ClassVar[str] = ""
    """How a row names its policy (`policy_id`, `turn__policy_id`), or IN_THE_ADDRESS: what a key that is limited to
    some policies sees of it. Nothing said is of the whole tenant, which such a key may not ask about."""
    waits: ClassVar[frozenset[str]] = frozenset()
    """POSTs that wait for engines and so run outside a transaction. Done twice at once, they do nothing twice."""

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
        self._keep_to_policies()
        post = getattr(self, "post", None)
        if request.method == "POST" and post is not None:
            asked = Asked.of(request, tenant_id=self.caller.tenant_id, user_id=self.caller.user_id)
            if asked is not None:
                setattr(self, "post", partial(self._once, post, asked))  # noqa: B010  # as view sets set theirs

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

    def again(self, made: uuid.UUID) -> Response:
        """Return, as it stands now, what the same POST made before; raise NotFound where it is gone."""
        raise NotImplementedError

    def _keep_to_policies(self) -> None:
        policies = self.caller.policies
        if policies is None:
            return
        if not self.of_policy or self.request.method not in SAFE_METHODS:
            raise Forbidden(
                "This key is limited to some policies, and this is of the whole tenant. Ask with a key of all policies."
            )
        if self.of_policy == IN_THE_ADDRESS and self.kwargs["pk"] not in policies:
            raise NotFound("There is no such thing here.")

    def _once(self, post: View, asked: Asked, *args: Any, **kwargs: Any) -> Response:
        if getattr(self, "action", None) in self.waits:
            found = wishes.find(asked)
            if found is not None:
                return self._as_before(found)
            response = post(*args, **kwargs)
            with transaction.atomic():
                wish, is_new = wishes.claim(asked)
                if is_new:  # else two came at once, and did it once
                    wishes.keep(wish, status=response.status_code, answer=response.data)
            return response
        with transaction.atomic():
            wish, is_new = wishes.claim(asked)
            if not is_new:
                return self._as_before(wish)
            response = post(*args, **kwargs)
            wishes.keep(wish, status=response.status_code, answer=response.data)
        return response

    def _as_before(self, wish: Wish) -> Response:
        assert wish.made is not None  # noqa: S101  # what made nothing was rolled back
        if wish.shows_secret:
            raise Conflict(
                f"This made {wish.made} before, and its secret was shown in that answer alone. Was it lost? "
                "Rotate or revoke that one, and ask under another idempotency key.",
                field=wishes.HEADER,
                code="secret_shown_once",
                detail={"made": str(wish.made)},
            )
        try:
            response = self.again(wish.made)
        except NotFound:
            raise Conflict(
                "What this idempotency key made is gone. Ask under another key to make it anew.",
                field=wishes.HEADER,
                code="made_is_gone",
                detail={"made": str(wish.made)},
            ) from None
        response.status_code = wish.status or response.status_code
        response.headers["Idempotent-Replayed"] = "true"
        return response


class ScopedViewSet(ScopedView, GenericViewSet[M]):
    """Lists and shows rows; a subclass says which (`rows`), how (`serializer_class`) and what changes them."""

    lookup_value_converter = "uuid"

    def rows(self) -> QuerySet[M]:
        """Return the rows that exist for the caller."""
        raise NotImplementedError

    def get_queryset(self) -> QuerySet[M]:
        """Return `rows()`, for a key of some policies only theirs;
        none while the schema is being written, when nobody asks."""
        if getattr(self, "swagger_fake_view", False):
            serializer = cast("Any", self.get_serializer_class())
            model: type[M] = serializer.Meta.model
            return QuerySet(model).none()
        rows, policies = self.rows(), self.caller.policies
        if policies is None or self.of_policy == IN_THE_ADDRESS:
            return rows
        return rows.filter(**{f"{self.of_policy}__in": policies})

    def again(self, made: uuid.UUID) -> Response:
        """As above: the row that the view shows."""
        row = self.get_queryset().filter(pk=made).first()
        if row is None:
            raise NotFound("There is no such thing here.")
        return Response(self.get_serializer(row).data)

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
