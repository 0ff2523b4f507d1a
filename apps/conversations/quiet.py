"""Whether anybody asks: what is done beside people's requests waits for that."""

import datetime as dt

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from apps.conversations.models import Turn, TurnKind, TurnState
from apps.engines.aside import MOST_AT_ONCE
from kernel.ids import first_id_at
from kernel.tenancy import system_scope

_LONGEST = dt.timedelta(minutes=10)
"""A turn that is pending for longer is lost rather than being answered."""
AFTER_A_WHILE_S = 30.0
"""Nobody asked for so long: from talk to silence."""
IN_TALK, IN_SILENCE = 4, MOST_AT_ONCE
"""Requests that an engine has beside people's: who asked lately is likely to ask again, and then waits for what is under way."""


def room_beside_people() -> int:
    """Return how many requests an engine may have beside people's, now: 0 while somebody asks, few soon after."""
    if not is_quiet(for_s=settings.SHADOW_QUIET_S):
        return 0
    return IN_SILENCE if is_quiet(for_s=AFTER_A_WHILE_S) else IN_TALK


def is_quiet(*, for_s: float) -> bool:
    """Return whether nobody, of any tenant, is being answered or has asked in the last `for_s` seconds.

    The rows say it, for every gateway at once: a request is a row before an engine hears of it. Their times are the
    database's, so it is held against that clock and not this machine's.
    """
    since = Now() - dt.timedelta(seconds=for_s)
    with system_scope("whether anybody asks"):
        lately = Turn.objects.filter(id__gte=first_id_at(timezone.now() - _LONGEST))
        asked = lately.exclude(kind=TurnKind.SHADOW)
        busy = Q(state=TurnState.PENDING) | Q(created_at__gt=since) | Q(completed_at__gt=since)
        return not asked.filter(busy).exists()
