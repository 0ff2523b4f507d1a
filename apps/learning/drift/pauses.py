"""Training of a policy stands still until somebody resumes it.

Turns are served, judged and kept meanwhile.
"""

import uuid

from django.db import transaction
from django.utils import timezone

from apps.adapters.models import Policy
from apps.alerts import services as alerts
from apps.alerts.models import Event, Severity
from apps.learning.drift.models import Action, Crossing, TrainingPause
from kernel import audit
from kernel.errors import Conflict, NotFound


def why_paused(policy_id: uuid.UUID) -> str:
    """Return why training of a policy stands still, or ""."""
    pause = TrainingPause.objects.filter(policy_id=policy_id, resumed_at=None).first()
    return "" if pause is None else pause.reason


def pause(*, policy_id: uuid.UUID, actor: str, reason: str) -> TrainingPause:
    """Let a policy make no more steps until it is resumed; audited.

    Raises Conflict where it stands still already.
    """
    with transaction.atomic():
        policy = _locked(policy_id)
        if why_paused(policy_id):
            raise Conflict(f"training of {policy.name} is paused already")
        return hold(policy, actor=actor, reason=reason)


def resume(*, policy_id: uuid.UUID, actor: str, reason: str) -> TrainingPause:
    """Let a paused policy train again; audited.

    The crossings that stopped it are over: another one would act anew.

    Raises Conflict where it is not paused. The caller may want a look at the schedule afterwards.
    """
    with transaction.atomic():
        policy = _locked(policy_id)
        row = TrainingPause.objects.filter(policy=policy, resumed_at=None).first()
        if row is None:
            raise Conflict(f"training of {policy.name} is not paused")
        now = timezone.now()
        row.resumed_at, row.resumed_by = now, actor[:200]
        row.save()
        Crossing.objects.filter(policy=policy, cleared_at=None).exclude(action=Action.ALERT).update(
            cleared_at=now, cleared_by=f"resumed by {actor}"[:200]
        )
        audit.record(
            actor=actor,
            action="policy.resume",
            target=f"policy:{policy.pk}",
            tenant_id=policy.tenant_id,
            detail={"policy": policy.name, "reason": reason, "was": row.reason},
        )
        alerts.alert(
            tenant_id=policy.tenant_id,
            event=Event.POLICY_RESUMED,
            severity=Severity.INFO,
            words=f"Training of {policy.name} goes on: {reason}",
            policy_id=policy.pk,
            data={"policy": policy.name},
            dedupe_key=f"resumed:{row.pk}",
        )
    return row


def hold(policy: Policy, *, actor: str, reason: str) -> TrainingPause:
    """Pause a policy whose row the caller has locked;
    one that is paused already stays so, for its first reason."""
    row = TrainingPause.objects.filter(policy=policy, resumed_at=None).first()
    if row is not None:
        return row
    row = TrainingPause.objects.create(
        tenant_id=policy.tenant_id, policy=policy, reason=reason[:500], actor=actor[:200]
    )
    audit.record(
        actor=actor,
        action="policy.pause",
        target=f"policy:{policy.pk}",
        tenant_id=policy.tenant_id,
        detail={"policy": policy.name, "reason": row.reason},
    )
    alerts.alert(
        tenant_id=policy.tenant_id,
        event=Event.POLICY_PAUSED,
        severity=Severity.CRITICAL,
        words=f"Training of {policy.name} is paused: {row.reason}",
        done="It is served as before and its turns are kept. Nothing is learned until somebody resumes it.",
        policy_id=policy.pk,
        data={"policy": policy.name, "actor": actor},
        dedupe_key=f"paused:{row.pk}",
    )
    return row


def _locked(policy_id: uuid.UUID) -> Policy:
    policy = Policy.objects.select_for_update(of=("self",), no_key=True).filter(pk=policy_id).first()
    if policy is None:
        raise NotFound("there is no such policy")
    return policy
