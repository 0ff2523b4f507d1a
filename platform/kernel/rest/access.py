"""Whether a caller may do what a view does."""

from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from kernel.rest.caller import Access, RestCaller

if TYPE_CHECKING:  # the library reads this module while it loads its own views
    from rest_framework.views import APIView


class EnoughAccess(BasePermission):
    """Asks for what the view says that its action `needs`, and for a key that may write where it changes something."""

    message = (
        "This key may only read: it lacks the scope `manage`, or its person's role does not give it. "
        "Make a key that has it under Keys, or ask an owner for another role."
    )
    """What a caller is told who has the access and whose key may not write."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Return True, or False for somebody unknown; raise Forbidden with the reason."""
        caller = request.auth
        if not isinstance(caller, RestCaller):
            return False
        needs: Access | dict[str, Access] = getattr(view, "needs", Access.OWN)
        if isinstance(needs, dict):
            needs = needs.get(getattr(view, "action", None) or "", needs.get("*", Access.OWN))
        caller.require(needs)
        return request.method in SAFE_METHODS or caller.may_write
