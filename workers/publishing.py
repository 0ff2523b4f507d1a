"""Bring a created version live, and see to what changes where another one answers."""

import logging
import uuid

from django.db import transaction

from apps.adapters import publishing
from apps.adapters.models import AdapterVersion
from apps.evaluation.choosing import gate, retiring, yardstick
from apps.learning import schedule
from apps.learning.commits import ask_to_publish
from apps.memory import services as memory
from kernel.errors import AttuneError
from kernel.locks import alone
from kernel.tenancy import tenant_scope
from workers.tasks import task

logger = logging.getLogger(__name__)

RETRY_S = 5.0


@task("workers.publishing.publish")
def publish(*, tenant_id: str, version_id: str) -> None:
    """Preflight, load, probe, choose and point; then see whether the next batch waits already.

    While no engine can be asked, one breaks in the middle, people ask while a choice is to be made, or its
    yardstick is not there, nothing is decided: the version says what it waits for, and it is tried again.
    One at a time for a version: to choose takes a minute of an engine, and the message may come twice.
    """
    with tenant_scope(tenant_id), alone(f"publish:{version_id}") as first:
        version = AdapterVersion.objects.filter(id=uuid.UUID(version_id)).first()
        if version is None or not first:
            return
        try:
            yardstick.check_measurable(version)
            publishing.publish(version.id, choose=gate.choose)
        except AttuneError as error:
            if not publishing.mends_with_time(error):
                raise
            logger.info("%s waits: %s", version.served_name, error.message)
            with transaction.atomic():
                publishing.note_waiting(version, error.message)
                ask_to_publish(version, delay_s=RETRY_S)
            return
        with transaction.atomic():
            schedule.consider(policy_id=version.policy_id)


@task("workers.publishing.look_what_is_held")
def look_what_is_held(*, tenant_id: str, policy_id: str) -> None:
    """Tell again what the version that answers now never learned, and teach on from what it is."""
    with tenant_scope(tenant_id):
        memory.tell_again(policy_id=uuid.UUID(policy_id))
        retiring.look_at_pointer(policy_id=uuid.UUID(policy_id))
