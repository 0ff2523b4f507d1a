"""Read keys."""

import uuid

from django.db.models import QuerySet
from django.utils import timezone

from apps.keys.models import ApiKey


def working_keys(user_id: uuid.UUID) -> QuerySet[ApiKey]:
    """Return a person's keys in scope that are taken now: neither revoked nor at their end."""
    keys = ApiKey.objects.filter(user_id=user_id, revoked_at=None)
    return keys.exclude(expires_at__lte=timezone.now())
