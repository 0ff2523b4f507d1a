"""Shadow rollouts: while nobody asks, and only then."""

import logging
import uuid

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction

from apps.adapters.models import Policy
from apps.conversations.quiet import room_beside_people
from apps.evaluation.choosing import retiring, yardstick
from apps.learning.shadow.due import candidates, drop_outdated
from apps.learning.shadow.plan import Wave, next_wave, step_is_under_way, why_not_taught
from apps.learning.shadow.rollouts import roll_out
from apps.memory.lessons import standing
from kernel.errors import AttuneError
from kernel.locks import alone
from kernel.tenancy import system_scope, tenant_scope
from workers.tasks import task

logger = logging.getLogger(__name__)


@task("workers.shadow.look")
def look() -> None:
    """Have the policies that are told something, or taught still,
    answer one wave each, until somebody asks."""
    if not settings.SHADOW_ENABLED or not room_beside_people():
        return
    with alone("shadow rollouts") as first:
        if not first:
            return
        with system_scope("shadow rollouts"):
            policies = candidates()
        for tenant_id, policy_id in policies:
            if not _goes_on(tenant_id, policy_id):
                return


def _goes_on(tenant_id: uuid.UUID, policy_id: uuid.UUID) -> bool:
    """Teach one policy; a fault in one's rows must not keep the others waiting for ever."""
    with tenant_scope(tenant_id):
        try:
            return teach_once(policy_id)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            logger.exception("policy %s could not be taught", policy_id)
            return True


def teach_once(policy_id: uuid.UUID) -> bool:
    """Have one policy answer a wave, if one is due; return whether it is still quiet.

    Must run in the tenant's scope.

    What its lesson is measured by is measured while a step is trained on, whatever it learns from: the engine
    would have nothing to do.
    """
    policy = Policy.objects.select_related("tenant", "live").filter(pk=policy_id).first()
    if policy is None:
        return True
    with transaction.atomic():
        stands = standing(policy)
        drop_outdated(policy, None if isinstance(stands, str) else stands)
    if not isinstance(stands, str):
        retiring.settle(policy, stands)
    wave = next_wave(policy)
    if isinstance(wave, str):
        logger.debug("policy %s is not taught: %s", policy.pk, wave)
    try:
        if isinstance(wave, Wave):
            made = roll_out(wave, room=room_beside_people)
            logger.info("policy %s: %d shadow samples", policy_id, made)
        if not isinstance(stands, str) and step_is_under_way(policy) and not why_not_taught(policy):
            yardstick.prepare(policy=policy, stands=stands, room=room_beside_people)
    except AttuneError as error:  # an engine that is away or refuses, or somebody who asks
        logger.info("policy %s is not taught now: %s", policy.pk, error.message)
    return room_beside_people() > 0
