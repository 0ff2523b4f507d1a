"""What a deletion by age asks of its policy: how long it keeps sessions, and whether that still holds."""

from apps.adapters.models import Policy
from apps.governance.models import Erasure, Subject
from apps.learning.config import resolve
from kernel.errors import InvalidInput


def kept_days(policy: Policy) -> int | None:
    """Return after how many days without a turn the policy's sessions go; None: they are kept.

    Also None where the platform does not take the policy's configuration any more: nothing is deleted on a
    guess.
    """
    try:
        return resolve(policy.config).retention_days
    except InvalidInput:
        return None


def is_called_off(erasure: Erasure) -> bool:
    """Whether the policy keeps its sessions for longer by now than a deletion by age has it."""
    if erasure.subject != Subject.AGED or erasure.subject_id is None or erasure.older_than_days is None:
        return False
    policy = Policy.objects.filter(pk=erasure.subject_id).first()
    days = None if policy is None else kept_days(policy)
    return days is None or days > erasure.older_than_days
