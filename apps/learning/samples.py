"""Make of a judged turn the one sample that it is worth, or the stated reason why it is worth none."""

import uuid
from dataclasses import replace

from django.conf import settings
from django.db import transaction

from apps.conversations.models import Turn, TurnKind
from apps.conversations.reading import hinted_prompt
from apps.engines.chat import CannotExtend
from apps.judging.models import JudgementState, PersonalData, Trajectory
from apps.judging.personal_data import kinds_in, why_not_trained_on
from apps.judging.reasons import Reason, reason_of
from apps.judging.rules import rules_of
from apps.judging.selectors import Verdict, verdict
from apps.learning import schedule
from apps.learning.eligibility import Worth, worth
from apps.learning.models import Sample, SampleState
from kernel import outbox
from kernel.errors import InvalidInput

CLAIMED_WAIT_S = 30.0
TAKEN = (SampleState.CLAIMED, SampleState.CONSUMED, SampleState.DROPPED)


def make_sample(*, turn_id: uuid.UUID) -> Sample | None:
    """Write the turn's sample as things stand now; return it, or None where nothing can be said yet.

    Safe to call again: there is one row per turn. Until a run has taken it, it follows what is said of
    the turn (a late next state, a thumb by hand); afterwards it stays as it is. A ready sample that fills a
    batch starts a run in the same transaction.
    """
    with transaction.atomic():
        # serialises those who look at the same turn, so that the last one sees everything said before it
        turn = (
            Turn.objects.select_for_update(of=("self",), no_key=True)
            .select_related("policy", "tenant", "session")
            .filter(id=turn_id)
            .first()
        )
        if turn is None or turn.is_open or turn.kind == TurnKind.SHADOW:
            return None  # what a shadow turn is worth was known when it was made
        sample = Sample.objects.select_for_update().filter(turn=turn).first()
        if sample is not None and sample.state in TAKEN:
            if sample.state == SampleState.CLAIMED:
                # the step may come to nothing: then what is said now counts
                ask_again(turn)
            return sample
        said = verdict(turn.id)
        trajectory = Trajectory.objects.filter(session_id=turn.session_id).first()
        outcome = trajectory.outcome if trajectory is not None else None
        mode = rules_of(turn.policy).personal_data
        said, withheld = _without_personal_data(said, mode)
        found = why_not_trained_on(
            mode, request=turn.messages, reply=turn.reply or {}, next_state=turn.next_state
        )
        result = worth(turn, said, outcome=outcome, found=found)
        if withheld and reason_of(result.refused) == Reason.NO_SIGNAL:
            result = Worth(refused=Reason.PERSONAL_DATA.say("in every hint"))
        if _may_still_be_said(turn, said, trajectory) and _waits(result):
            return sample
        hints = [] if result.refused else _rendered(turn, result.hints)
        result = _with_hints(result, hints)
        if sample is None:
            sample = Sample(tenant_id=turn.tenant_id, turn=turn, policy=turn.policy, source=turn.kind)
        sample.version_id = turn.version_id
        sample.state = SampleState.INELIGIBLE if result.refused else SampleState.READY
        sample.reason = (result.refused or result.note)[:200]
        sample.reward = result.reward
        sample.rollout_outcome = result.outcome
        sample.rollout_group = trajectory.task_group if trajectory is not None else ""
        sample.rollout_step = _step_of(turn) if trajectory is not None else 0
        sample.hints = hints
        sample.save()
        if sample.state == SampleState.READY:
            schedule.consider(policy_id=turn.policy_id)
    return sample


def set_aside(*, turn_id: uuid.UUID, reason: str) -> None:
    """Note that no sample can be made of a turn, and why."""
    with transaction.atomic():
        turn = Turn.objects.select_for_update(no_key=True).filter(id=turn_id).first()
        if turn is None or Sample.objects.filter(turn=turn, state__in=TAKEN).exists():
            return
        Sample.objects.update_or_create(
            turn=turn,
            defaults={
                "tenant_id": turn.tenant_id,
                "policy_id": turn.policy_id,
                "source": turn.kind,
                "version_id": turn.version_id,
                "state": SampleState.INELIGIBLE,
                "reason": reason[:200],
                "reward": None,
                "hints": [],
            },
        )


def ask_again(turn: Turn, *, delay_s: float = CLAIMED_WAIT_S) -> None:
    """Look at a turn once more later, in the caller's transaction."""
    outbox.enqueue(
        task="workers.samples.make_sample",
        queue="judge",
        tenant_id=turn.tenant_id,
        kwargs={"turn_id": str(turn.id)},
        dedupe_key=f"sample-later:{turn.id}",
        delay_s=delay_s,
    )


def _waits(result: Worth) -> bool:
    """Whether what is still to be said could change this: what a turn is by itself, nothing can."""
    return reason_of(result.refused) in (None, Reason.NO_NEXT_STATE, Reason.NO_SIGNAL)


def _may_still_be_said(turn: Turn, said: Verdict | None, trajectory: Trajectory | None) -> bool:
    """Whether a verdict or an attempt's outcome is on its way, or the conversation is not over."""
    if trajectory is not None and trajectory.outcome is None and turn.session.idle_at is None:
        return True
    if said is not None or turn.reply_edited:
        return False
    if turn.next_state is None:
        # the last turn of an attempt has its outcome to go by
        return turn.session.idle_at is None and trajectory is None
    return not turn.judgements.exclude(state=JudgementState.PENDING).exists()


def _without_personal_data(said: Verdict | None, mode: PersonalData) -> tuple[Verdict | None, int]:
    """Return the verdict without hints that hold personal data, and how many those are:
    a blank teaches to say blanks."""
    if said is None or mode == PersonalData.OFF:
        return said, 0
    clean = tuple(hint for hint in said.hints if not kinds_in(hint))
    return replace(said, hints=clean), len(said.hints) - len(clean)


def _step_of(turn: Turn) -> int:
    """Return how many turns of the same session came before."""
    return Turn.objects.filter(session_id=turn.session_id, id__lt=turn.id).count()


def _rendered(turn: Turn, hints: tuple[str, ...]) -> list[dict[str, object]]:
    """Return the hints with the turn's prompt as it would read with each, in tokens; those that fit only.

    The teacher reads what the model read, token for token, and the hint.
    """
    found: list[dict[str, object]] = []
    for text in hints:
        try:
            ids = hinted_prompt(turn, text)
        except (InvalidInput, CannotExtend):  # no user message to put it into, or longer than any prompt
            continue
        if len(ids) + len(turn.output_ids) <= settings.CONTEXT_LENGTH:
            found.append({"text": text, "prompt_ids": ids})
    return found


def _with_hints(result: Worth, hints: list[dict[str, object]]) -> Worth:
    """Return the worth that is left when only `hints` could be rendered."""
    if result.refused or hints or result.reward is not None or result.outcome is not None:
        return result
    return Worth(refused=Reason.NO_SIGNAL.say("the hint does not fit into the prompt"))
