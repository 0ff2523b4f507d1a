"""Judge a window of a policy's turns once more, beside what was said of them before.

What is done stands in the judgements themselves, so a re-judging may die, be delivered twice or run in
several places: each turn is judged once under the new identity. The newest verdict counts for a sample that
no step has taken; a consumed sample keeps what it was trained with.
"""

import datetime as dt
import uuid
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from apps.accounts import pausing
from apps.adapters.models import Policy
from apps.conversations.models import Turn, TurnKind, TurnState
from apps.judging.backends import configured_judge
from apps.judging.eligibility import opted_out_turns
from apps.judging.judge import Judge
from apps.judging.models import (
    Judgement,
    JudgementSource,
    JudgementState,
    Rejudging,
    RejudgingState,
)
from apps.judging.rules import Rules, rules_of
from apps.judging.services.asking import ask_to_rejudge
from apps.judging.services.judgements import BACKOFF_S, Identity, identity_of, judge_all
from apps.judging.services.operators import revive
from kernel import audit
from kernel.errors import Conflict, InvalidInput, NotFound
from kernel.ids import first_id_at
from kernel.locks import locked

AT_ONCE = 16  # turns that are judged together
HELD_BY_OTHERS_S = 5.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a re-judging is, turns."""

    total: int
    settled: int
    dead: int
    """Dead letters: the judge did not answer, or the spend cap was reached."""

    @property
    def left(self) -> int:
        """Not judged yet."""
        return max(0, self.total - self.settled - self.dead)


def rejudge_window(
    *,
    policy: Policy,
    since: dt.datetime,
    until: dt.datetime,
    actor: str,
    backend: Judge | None = None,
    announce: bool = True,
) -> Rejudging:
    """Ask for a window [since, until) of a policy's turns to be judged by the rules of now; audited.

    The same window under the same rules is asked for once at a time: a second call returns the one under way.
    Dead letters of the same identity in the window get their attempts back. Raises InvalidInput where the
    window is empty.
    """
    if since >= until:
        raise InvalidInput("The window ends before it begins.", field="until")
    rules = rules_of(policy)
    identity = identity_of(backend or configured_judge(rules), rules)
    stamp = {
        "rubric_id": identity.rubric_id,
        "judge": identity.judge,
        "prompt_version": identity.prompt_version,
        "votes_asked": identity.votes_asked,
        "temperature": identity.temperature,
    }
    with transaction.atomic():
        turns = _turns(policy.id, since, until)
        dead = Judgement.objects.filter(
            turn__in=turns, source=JudgementSource.JUDGE, state=JudgementState.FAILED, **stamp
        )
        for judgement in locked(dead):
            revive(judgement)
        running = Rejudging.objects.select_for_update().filter(
            policy=policy, since=since, until=until, state=RejudgingState.RUNNING, **stamp
        )
        if (under_way := running.first()) is not None:
            under_way.cursor = None  # what was revived may lie before it
            under_way.save(update_fields=["cursor"])
            return under_way
        try:
            with transaction.atomic():
                rejudging = Rejudging.objects.create(
                    tenant_id=policy.tenant_id,
                    policy=policy,
                    since=since,
                    until=until,
                    actor=actor,
                    total=turns.count(),
                    **stamp,
                )
        except IntegrityError:  # asked for twice in the same moment: nothing of it is judged yet
            return running.get()
        audit.record(
            actor=actor,
            action="judging.rejudge",
            target=f"rejudging:{rejudging.id}",
            tenant_id=policy.tenant_id,
            detail={
                "policy": policy.name,
                "since": since.isoformat(),
                "until": until.isoformat(),
                "turns": rejudging.total,
            },
        )
        if announce:
            ask_to_rejudge(rejudging_id=rejudging.id, tenant_id=policy.tenant_id)
    return rejudging


def rejudge_some(*, rejudging_id: uuid.UUID, backend: Judge | None = None, announce: bool = True) -> bool:
    """Judge the next turns of a re-judging; return whether any are left.

    With `announce` the rest is asked for.

    While the tenant is paused none are judged, and what is asked for waits in the outbox.
    """
    rejudging = (
        Rejudging.objects.select_related("policy", "rubric")
        .filter(id=rejudging_id, state=RejudgingState.RUNNING)
        .first()
    )
    if rejudging is None:
        return False
    if pausing.is_paused(rejudging.tenant_id):
        if announce:
            with transaction.atomic():
                ask_to_rejudge(rejudging_id=rejudging_id, tenant_id=rejudging.tenant_id)
        return True
    identity = _identity(rejudging)
    turn_ids = list(_left(rejudging, identity).values_list("id", flat=True)[:AT_ONCE])
    rules = _rules(rejudging)
    backend = backend or configured_judge(rules)
    if identity_of(backend, rules) != identity:
        _end(rejudging_id, RejudgingState.CANCELLED, "the configured judge is another one now")
        return False
    judged = judge_all(turn_ids, backend=backend, rules=rules, again=identity)
    with transaction.atomic():
        rejudging = Rejudging.objects.select_for_update().get(id=rejudging_id)
        if rejudging.state != RejudgingState.RUNNING:
            return False
        rejudging.moved_at = timezone.now()
        first = _left(rejudging, identity).values_list("id", flat=True).first()
        if first is None:
            rejudging.state = RejudgingState.DONE
            rejudging.finished_at = rejudging.moved_at
            rejudging.save()
            return False
        rejudging.cursor = uuid.UUID(int=first.int - 1)
        rejudging.save()
        if announce:
            settled = any(judgement.state == JudgementState.SETTLED for judgement in judged)
            ask_to_rejudge(
                rejudging_id=rejudging_id,
                tenant_id=rejudging.tenant_id,
                # nothing came of it: others hold these turns, or the judge is away
                delay_s=0.0 if settled else BACKOFF_S[0] if judged else HELD_BY_OTHERS_S,
            )
    return True


def cancel_rejudging(*, rejudging_id: uuid.UUID, actor: str) -> Rejudging:
    """End a re-judging; what was judged already stays. Audited."""
    with transaction.atomic():
        rejudging = _end(rejudging_id, RejudgingState.CANCELLED, f"cancelled by {actor}")
        audit.record(
            actor=actor,
            action="judging.rejudge.cancel",
            target=f"rejudging:{rejudging.id}",
            tenant_id=rejudging.tenant_id,
        )
    return rejudging


def progress_of(rejudging: Rejudging) -> Progress:
    """Return how far it is, counted from the judgements."""
    made = _judgements(_identity(rejudging)).filter(
        turn__in=_turns(rejudging.policy_id, rejudging.since, rejudging.until)
    )
    return Progress(
        total=rejudging.total,
        settled=made.filter(state=JudgementState.SETTLED).count(),
        dead=made.filter(state=JudgementState.FAILED).count(),
    )


def ask_for_stalled(*, older_than_s: float) -> int:
    """Announce again the re-judgings in scope that did not get further for so long; return how many."""
    before = timezone.now() - dt.timedelta(seconds=older_than_s)
    with transaction.atomic():
        stalled = list(
            Rejudging.objects.filter(state=RejudgingState.RUNNING, moved_at__lt=before).values_list(
                "id", "tenant_id"
            )
        )
        for rejudging_id, tenant_id in stalled:
            ask_to_rejudge(rejudging_id=rejudging_id, tenant_id=tenant_id)
    return len(stalled)


def _end(rejudging_id: uuid.UUID, state: RejudgingState, why: str) -> Rejudging:
    with transaction.atomic():
        rejudging = Rejudging.objects.select_for_update().filter(id=rejudging_id).first()
        if rejudging is None:
            raise NotFound("there is no such re-judging")
        if rejudging.state != RejudgingState.RUNNING:
            raise Conflict(f"the re-judging is {rejudging.state}")
        rejudging.state = state
        rejudging.reason = why[:300]
        rejudging.finished_at = timezone.now()
        rejudging.save()
    return rejudging


def _turns(policy_id: uuid.UUID, since: dt.datetime, until: dt.datetime) -> QuerySet[Turn]:
    return Turn.objects.filter(
        ~opted_out_turns(),
        policy_id=policy_id,
        id__gte=first_id_at(since),
        id__lt=first_id_at(until),
        state=TurnState.COMPLETE,
        side=False,
        kind__in=(TurnKind.LIVE, TurnKind.ROLLOUT),
        next_state__isnull=False,
        reply_edited=False,
    )


def _left(rejudging: Rejudging, identity: Identity) -> QuerySet[Turn]:
    """The window's turns that are not judged under the identity and that nobody holds, oldest first."""
    made = _judgements(identity).filter(turn=OuterRef("pk"))
    done = made.filter(~Q(state=JudgementState.PENDING))
    turns = _turns(rejudging.policy_id, rejudging.since, rejudging.until).filter(~Exists(done))
    if rejudging.cursor is not None:
        turns = turns.filter(id__gt=rejudging.cursor)
    return turns.order_by("id")


def _judgements(identity: Identity) -> QuerySet[Judgement]:
    rows = Judgement.objects.filter(
        source=JudgementSource.JUDGE,
        judge=identity.judge,
        prompt_version=identity.prompt_version,
        votes_asked=identity.votes_asked,
        temperature=identity.temperature,
    )
    rubric = identity.rubric_id
    return rows.filter(rubric=None) if rubric is None else rows.filter(rubric_id=rubric)


def _identity(rejudging: Rejudging) -> Identity:
    return Identity(
        judge=rejudging.judge,
        prompt_version=rejudging.prompt_version,
        rubric_id=rejudging.rubric_id,
        votes_asked=rejudging.votes_asked,
        temperature=rejudging.temperature,
    )


def _rules(rejudging: Rejudging) -> Rules:
    """Return the rules that the window was asked to be judged by, with the cap of now."""
    now = rules_of(rejudging.policy)
    return Rules(
        votes=rejudging.votes_asked,
        temperature=rejudging.temperature,
        daily_tokens=now.daily_tokens,
        personal_data=now.personal_data,
        rubric_id=rejudging.rubric_id,
        rubric=rejudging.rubric.text if rejudging.rubric is not None else "",
    )
