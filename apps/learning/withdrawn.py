"""Samples that may teach no more: their person takes no part any longer, or wants something else by now.

Looked at when a run takes its batch and once more when its step is committed, so that what was said in
between counts: a version is made of what its people still agree to, or it is not made.
"""

import uuid
from collections.abc import Iterable
from typing import Any

from django.db.models import Exists, OuterRef

from apps.adapters.models import Policy
from apps.conversations.models import TurnKind
from apps.judging.eligibility import opt_outs
from apps.judging.reasons import Reason
from apps.learning.models import Sample, SampleState, TrainingRun
from apps.memory.selectors import wanted_of
from kernel.locks import locked


def withdraw(policy: Policy, *, run: TrainingRun | None = None) -> int:
    """Set aside what may teach no more of the samples that wait,
    or of those that `run` holds; return how many.

    In the caller's transaction, which has the policy locked.
    """
    rows = Sample.objects.filter(policy=policy)
    rows = (
        rows.filter(state=SampleState.READY)
        if run is None
        else rows.filter(run=run, state=SampleState.CLAIMED)
    )
    person = (OuterRef("turn__session__user_id"), OuterRef("turn__session__end_user_id"))
    out = opt_outs(policy.tenant_id, *person, OuterRef("turn__created_at"))
    opted_out = list(rows.filter(Exists(out)).values_list("id", flat=True))
    shadows = rows.filter(source=TurnKind.SHADOW)
    taught = list(shadows.values_list("id", "hints__0__preferences", "hints__0__text"))
    unwanted = _unwanted(policy, taught) - set(opted_out)
    # whoever writes a waiting one anew holds it and waits for this policy
    held = locked(rows, skip_locked=run is None)
    number = 0
    for ids, state, reason in (
        (opted_out, SampleState.INELIGIBLE, Reason.OPTED_OUT),
        (unwanted, SampleState.DROPPED, Reason.UNWANTED),
    ):
        if ids:
            number += set_aside(held.filter(id__in=ids).values_list("id", flat=True), state, reason)
    return number


def set_aside(ids: Iterable[uuid.UUID], state: SampleState, reason: Reason) -> int:
    """Write why samples (locked by the caller) teach nothing; what they would have taught is not kept."""
    return Sample.objects.filter(id__in=list(ids)).update(
        state=state, reason=reason.say(), reward=None, hints=[], run=None, staleness=None, weight=1.0
    )


def keep_no_words(ids: Iterable[uuid.UUID]) -> None:
    """Empty what shadow samples among these (locked by the caller) would have taught:
    they are over, the words stay with the wishes."""
    Sample.objects.filter(id__in=list(ids), source=TurnKind.SHADOW).update(hints=[])


def _unwanted(policy: Policy, taught: Iterable[tuple[uuid.UUID, Any, str | None]]) -> set[uuid.UUID]:
    """Return the shadow samples, given as (id, preferences, text),
    that teach what is not wanted in these words by now.

    It may be deleted, overruled, worded anew, or rest on nothing since the session that said it is gone.
    """
    waiting = list(taught)
    if not waiting:
        return set()
    wanted = [({"id": str(row.pk), "revision": row.revision}, row.words) for row in wanted_of(policy.pk)]

    def says(preferences: Any) -> str | None:
        words = [next((said for entry, said in wanted if entry == one), None) for one in preferences or ()]
        return None if None in words else " ".join(word or "" for word in words)

    return {id_ for id_, preferences, text in waiting if says(preferences) != (text or "")}
