"""How often one caller may ask /api, with the `RateLimit-*` headers that say so."""

import math
from typing import TYPE_CHECKING

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import SimpleRateThrottle

from kernel.rest.caller import RestCaller

if TYPE_CHECKING:  # the library reads this module while it loads its own views
    from rest_framework.views import APIView


class CallerThrottle(SimpleRateThrottle):
    """A sliding window of a minute for each key or person; strangers share one for their address."""

    scope = "api"
    num_requests: int  # the library sets both from the rate
    duration: int

    def get_cache_key(self, request: Request, view: "APIView") -> str:
        """Return what the requests are counted under."""
        del view
        caller = request.auth
        who = caller.actor if isinstance(caller, RestCaller) else self.get_ident(request)
        return f"api-rate:{who}"

    def allow_request(self, request: Request, view: "APIView") -> bool:
        """Count the request; remember the window for the headers."""
        allowed = super().allow_request(request, view)
        request.rate_window = self  # type: ignore[attr-defined]
        return allowed

    def describe(self, response: Response) -> None:
        """Add what is left of the window, requests and seconds."""
        oldest = self.history[-1] if self.history else self.now
        response.headers["RateLimit-Limit"] = str(self.num_requests)
        response.headers["RateLimit-Remaining"] = str(max(0, self.num_requests - len(self.history)))
        response.headers["RateLimit-Reset"] = str(math.ceil(max(0.0, oldest + self.duration - self.now)))
