"""Whether anybody asks: what is done beside people's requests waits for that."""

import datetime as dt

from django.conf import settings
from django.db.models import Case, Exists, Q, QuerySet, When
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
"""Requests that an engine has beside people's:
who asked lately is likely to ask again, and then waits for what is under way."""


def room_beside_people() -> int:
    """Return how many requests an engine may have beside people's, now:
    0 while somebody, of any tenant, asks, few soon after.

    The rows say it, for every gateway at once: a request is a row before an engine hears of it. Their times
    are the database's, so it is held against that clock and not this machine's. One query: it is asked ten
    times a second.
    """
    with system_scope("whether anybody asks"):
        lately = Turn.objects.filter(id__gte=first_id_at(timezone.now() - _LONGEST)).exclude(
            kind=TurnKind.SHADOW
        )
        room = Case(
            When(_asked_within(lately, settings.SHADOW_QUIET_S), then=0),
            When(_asked_within(lately, AFTER_A_WHILE_S), then=IN_TALK),
            default=IN_SILENCE,
        )
        found: int | None = next(iter(lately.order_by().values_list(room, flat=True)[:1]), None)
    return IN_SILENCE if found is None else found


def _asked_within(turns: QuerySet[Turn], seconds: float) -> Exists:
    """Say whether one of these turns is being answered, or was asked or answered in the last `seconds`."""
    since = Now() - dt.timedelta(seconds=seconds)
    return Exists(
        turns.filter(Q(state=TurnState.PENDING) | Q(created_at__gt=since) | Q(completed_at__gt=since))
    )
