"""What follows once a turn's verdict is settled: its person's preferences are kept, its sample is made."""

import logging
import uuid

from django.db import InterfaceError, OperationalError, transaction

from apps.accounts import pausing
from apps.judging.reasons import Reason
from apps.judging.services import ask_for_sample
from apps.learning import samples
from apps.memory import services as memory
from kernel.tenancy import tenant_scope
from workers.tasks import task

logger = logging.getLogger(__name__)


@task("workers.samples.make_sample")
def make_sample(*, tenant_id: str, turn_id: str) -> None:
    """Make one turn's sample. What cannot be done at all is a row with the reason, so nobody tries for ever.

    While the tenant is paused it is announced anew, which waits in the outbox.
    """
    with tenant_scope(tenant_id):
        if pausing.is_paused(uuid.UUID(tenant_id)):
            with transaction.atomic():
                ask_for_sample(turn_id=uuid.UUID(turn_id), tenant_id=uuid.UUID(tenant_id))
            return
        _remember(uuid.UUID(turn_id))
        try:
            samples.make_sample(turn_id=uuid.UUID(turn_id))
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:
            logger.exception("no sample could be made of turn %s", turn_id)
            samples.set_aside(
                turn_id=uuid.UUID(turn_id), reason=Reason.ERROR.say(f"{type(error).__name__}: {error}")
            )


def _remember(turn_id: uuid.UUID) -> None:
    """Keep what the verdict says of the person's wishes: first, so that their next request is told."""
    try:
        memory.remember(turn_id=turn_id)
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        logger.exception("nothing could be remembered of turn %s", turn_id)
