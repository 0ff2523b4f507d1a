"""Samples that may teach no more: their person takes no part any longer, or wants something else by now.

Looked at when a run takes its batch and once more when its step is committed, so that what was said in between counts:
a version is made of what its people still agree to, or it is not made.
"""

import uuid
from collections.abc import Iterable

from django.db.models import Exists, OuterRef

from apps.adapters.models import Policy
from apps.conversations.models import TurnKind
from apps.judging.eligibility import opt_outs
from apps.judging.reasons import Reason
from apps.learning.models import Sample, SampleState, TrainingRun
from apps.memory.models import Preference, PreferenceState
from kernel.locks import locked

HELD_TO = (PreferenceState.ACTIVE, PreferenceState.LEARNED)


def withdraw(policy: Policy, *, run: TrainingRun | None = None) -> int:
    """Set aside what may teach no more of the samples that wait, or of those that `run` holds; return how many.

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
    taught = dict(rows.filter(source=TurnKind.SHADOW).values_list("id", "hints__0__preferences"))
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
    """Empty what shadow samples among these (locked by the caller) would have taught: they are over, the words stay with the wishes."""
    Sample.objects.filter(id__in=list(ids), source=TurnKind.SHADOW).update(hints=[])


def _unwanted(policy: Policy, taught: dict[uuid.UUID, list[dict[str, object]] | None]) -> set[uuid.UUID]:
    """Return the shadow samples that teach what is deleted, overruled or worded in another way by now."""
    if not taught:
        return set()
    rows = Preference.objects.filter(policy=policy, state__in=HELD_TO).values_list("id", "revision")
    wanted = [{"id": str(id_), "revision": revision} for id_, revision in rows]
    return {id_ for id_, preferences in taught.items() if not all(one in wanted for one in preferences or ())}
