"""Who asks on the smaller routes, which are answered in a thread; `admission` looks up for itself."""

from apps.accounts import pausing
from apps.keys.models import KeyScope
from apps.keys.services import Caller, authenticate


def chatting(authorization: str | None) -> Caller:
    """Return whose key it is. Raises Unauthenticated, or Forbidden where the tenant is paused or the key may not chat."""
    caller = authenticate(authorization)
    pausing.refuse_while_paused(caller.tenant_id)
    caller.require(KeyScope.CHAT)
    return caller
