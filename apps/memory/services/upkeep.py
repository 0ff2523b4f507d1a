"""What nothing rests on any more is deleted for good."""

from django.db import transaction
from django.db.models import Exists, OuterRef

from apps.memory.models import Evidence, Preference, PreferenceState
from apps.memory.services.entries import revive
from kernel.locks import locked

_BATCH = 500


def forget_groundless() -> int:
    """Delete the preferences in scope whose sessions are gone and that nobody typed; return how many.

    No prompt was told of them since the sessions went. What they had superseded holds again, as if they had never been
    said. Tombstones go when their turns are gone.
    """
    grounds = Evidence.objects.filter(preference=OuterRef("pk"))
    with transaction.atomic():
        rows = list(
            locked(
                Preference.objects.filter(~Exists(grounds), own_words=""), skip_locked=True, to_delete=True
            )[:_BATCH]
        )
        for row in rows:
            if row.state != PreferenceState.DELETED:
                for other in locked(Preference.objects.filter(superseded_by=row)):
                    revive(other, "what replaced it was forgotten")
        Preference.objects.filter(pk__in=[row.pk for row in rows]).delete()
    return len(rows)
