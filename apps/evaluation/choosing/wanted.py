"""What shadow rollouts taught a version, held against what is wanted as it stands."""

from django.db.models import QuerySet

from apps.adapters.models import AdapterVersion
from apps.conversations.models import TurnKind
from apps.learning.models import Sample
from apps.memory.lessons import Standing

UNWANTED = "something else is wanted now"


def taught_by_shadows(version: AdapterVersion) -> bool:
    """Return whether a version was made of shadow samples; a batch of them has nothing else in it."""
    return _shadow_samples(version).exists()


def why_unwanted(version: AdapterVersion, stands: Standing | str) -> str:
    """Return why what shadow rollouts taught a version is not what is wanted as it stands, or "".

    Entry for entry, each in the revision that was taught.
    """
    if isinstance(stands, str):
        return f"{UNWANTED}: {stands}"
    wished = _shadow_samples(version).values_list("hints__0__preferences", flat=True)
    return "" if all(one == stands.entries for one in wished) else UNWANTED


def _shadow_samples(version: AdapterVersion) -> QuerySet[Sample]:
    return Sample.objects.filter(run_id=version.run_id, source=TurnKind.SHADOW)
