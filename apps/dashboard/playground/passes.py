"""The key that the playground asks the gateway with:
the member's own, short-lived, and never sent to a browser."""

import datetime as dt
import uuid
from typing import Any

from django.contrib.sessions.backends.base import SessionBase
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Membership
from apps.dashboard.places import Place
from apps.keys.models import ApiKey, KeyScope
from apps.keys.services import create_key
from kernel.sealing import Unreadable, seal, unseal

NAME = "playground"
LASTS = dt.timedelta(hours=1)
RENEWED = dt.timedelta(minutes=10)  # before it ends: a long reply is not cut off by the end of its key
_PURPOSE = "dashboard.playground"


def pass_of(session: SessionBase, place: Place) -> str:
    """Return the text of a key of this member that holds for some minutes at least;
    makes one where there is none.

    It stands sealed in the browser session's row here; signing out loses it. One that was revoked is
    replaced.
    """
    with transaction.atomic():
        # two columns ask at once: the second finds the key of the first
        Membership.objects.select_for_update(of=("self",), no_key=True).get(pk=place.membership.pk)
        known = type(session)(session.session_key).get(NAME) or {}
        kept = known.get(str(place.tenant.pk))
        if (text := _still_good(kept)) is not None:
            return text
        key, text = create_key(
            tenant=place.tenant,
            user=place.user,
            name=NAME,
            scopes=[KeyScope.CHAT, KeyScope.EVALUATE],
            expires_at=timezone.now() + LASTS,
            actor=place.actor,
        )
        sealed = seal(text.encode(), purpose=_PURPOSE)
        session[NAME] = {**known, str(place.tenant.pk): {"key": str(key.pk), "sealed": sealed}}
        session.save()
    return text


def _still_good(kept: Any) -> str | None:
    if not kept:
        return None
    good = ApiKey.objects.filter(
        pk=uuid.UUID(kept["key"]), revoked_at=None, expires_at__gt=timezone.now() + RENEWED
    )
    if not good.exists():
        return None
    try:
        return unseal(kept["sealed"], purpose=_PURPOSE).decode()
    except Unreadable:
        return None
