"""Go back to the version before, where a crossing asks for it.

May be asked for twice, late, or after a crash.
"""

import datetime as dt
import logging
import uuid

from django.db import transaction
from django.utils import timezone

from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.adapters.publishing import mends_with_time
from apps.adapters.services import move_pointer
from apps.learning.drift.crossings import ACTOR, ask_to_fall_back
from apps.learning.drift.models import Action, Crossing
from kernel.errors import AttuneError

logger = logging.getLogger(__name__)

RETRY_S = 10.0


def fall_back(*, crossing_id: uuid.UUID) -> None:
    """Let a policy answer from the version before the one that a crossing blames, if that one is still live.

    A crossing that is over by then (an operator resumed the policy) moves nothing. While no engine can be
    asked it is tried again, and the policy answers from the version it has; where an engine says no, or the
    files of the version before are gone, it stays with that and says so.
    """
    crossing = Crossing.objects.select_related("version").filter(pk=crossing_id).first()
    if crossing is None or crossing.acted_at is not None or crossing.action != Action.FALL_BACK:
        return
    if crossing.cleared_at is not None:
        _done(crossing, f"It was over before anything was done: {crossing.cleared_by}.", paused="")
        return
    blamed = crossing.version
    policy = Policy.objects.get(pk=crossing.policy_id)
    if blamed is None or policy.live_id != blamed.pk:
        _done(crossing, "The policy had moved to another version already.")
        return
    target = version_before(blamed)
    try:
        move_pointer(
            policy_id=policy.pk,
            to_version_id=target.pk if target else None,
            actor=ACTOR,
            reason=f"drift: {crossing.words}",
        )
    except AttuneError as error:
        if mends_with_time(error):
            logger.warning("policy %s waits to fall back: %s", policy.pk, error.message)
            with transaction.atomic():
                ask_to_fall_back(crossing, delay_s=RETRY_S)
            return
        logger.warning("policy %s could not fall back: %s", policy.pk, error.message)
        _done(crossing, f"It could not fall back: {error.message}.")
        return
    _done(
        crossing,
        f"The policy answers from {f'version {target.number}' if target else 'the bare base'} again.",
    )


def version_before(version: AdapterVersion) -> AdapterVersion | None:
    """Return the nearest ancestor that may be served; None is the bare base."""
    at = version.parent
    while at is not None and at.state != VersionState.READY:
        at = at.parent
    return at


def ask_again(*, older_than_s: float) -> int:
    """Announce falls back in scope that nobody did yet; return how many."""
    before = timezone.now() - dt.timedelta(seconds=older_than_s)
    with transaction.atomic():
        waiting = list(
            Crossing.objects.filter(
                action=Action.FALL_BACK, acted_at=None, cleared_at=None, created_at__lt=before
            )
        )
        for crossing in waiting:
            ask_to_fall_back(crossing)
    return len(waiting)


def _done(
    crossing: Crossing, said: str, *, paused: str = " Training is paused until somebody resumes it."
) -> None:
    Crossing.objects.filter(pk=crossing.pk, acted_at=None).update(
        acted_at=timezone.now(), done=f"{said}{paused}"[:300]
    )
