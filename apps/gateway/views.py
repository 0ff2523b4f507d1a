"""What all views share: methods, refusals, and the last net under them."""

import logging
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from apps.gateway.errors import Internal, MethodNotAllowed, error_response
from kernel.errors import AttuneError

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], Coroutine[Any, Any, HttpResponseBase]]

logger = logging.getLogger(__name__)


def endpoint(*methods: str) -> Callable[[View[P]], View[P]]:
    """Return a decorator of an async view: it answers these methods, and its errors in OpenAI's shape."""

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        async def answer(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            response: HttpResponseBase
            if methods and request.method not in methods:
                refused = error_response(MethodNotAllowed(f"Use {' or '.join(methods)} here."))
                refused["Allow"] = ", ".join(methods)
                return refused
            try:
                response = await view(request, *args, **kwargs)
            except AttuneError as error:
                response = error_response(error)
            except Exception:
                logger.exception("%s %r", request.method, request.path)  # the path may hold line breaks
                response = error_response(Internal("Something broke on our side."))
            if isinstance(response, HttpResponse):
                response["Content-Length"] = str(len(response.content))
            return response

        return answer

    return decorate
