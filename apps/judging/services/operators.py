"""What operators and admins change by hand: rubrics, settings, dead letters, verdicts. Each is audited."""

import uuid
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from apps.accounts.models import Tenant
from apps.adapters.models import Policy
from apps.conversations.models import Turn, TurnState
from apps.judging.eligibility import why_not_judged
from apps.judging.models import (
    MAX_RUBRIC_CHARACTERS,
    Judgement,
    JudgementSource,
    JudgementState,
    JudgeSettings,
    Rubric,
)
from apps.judging.services.asking import ask_for_judgement, ask_for_sample
from kernel import audit
from kernel.errors import Conflict, InvalidInput, NotFound

SETTINGS = ("votes", "temperature", "daily_tokens", "personal_data")


def write_rubric(*, tenant_id: uuid.UUID, policy: Policy | None, text: str, actor: str) -> Rubric:
    """Write the rubric that a tenant (or one of its policies) is judged by from now on;
    "" returns to one level above.

    Old rubrics stay, and what was judged by them. Raises InvalidInput over the limit.
    """
    text = text.replace("\x00", "").strip()
    if len(text) > MAX_RUBRIC_CHARACTERS:
        raise InvalidInput(f"A rubric has at most {MAX_RUBRIC_CHARACTERS} characters.", field="text")
    if policy is not None and policy.tenant_id != tenant_id:
        raise NotFound("there is no such policy")
    with transaction.atomic():
        # numbers are given out one at a time
        Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
        rows = Rubric.objects.filter(tenant_id=tenant_id)
        number = (rows.aggregate(last=Max("number"))["last"] or 0) + 1
        rubric = Rubric.objects.create(
            tenant_id=tenant_id, policy=policy, number=number, text=text, actor=actor
        )
        audit.record(
            actor=actor,
            action="rubric.write",
            target=f"rubric:{rubric.id}",
            tenant_id=tenant_id,
            detail={"number": number, "policy": policy.name if policy else "all"},
        )
    return rubric


def change_judging(
    *, tenant_id: uuid.UUID, policy: Policy | None, changes: dict[str, Any], actor: str
) -> JudgeSettings:
    """Set votes, temperature, daily_tokens or personal_data of a tenant or one of its policies;
    None: as one level above.

    The cap on tokens is the tenant's alone. Raises InvalidInput that names the field.
    """
    for name in changes:
        if name not in SETTINGS:
            raise InvalidInput(f"there is no judge setting {name!r}", field=name)
    if policy is not None and changes.get("daily_tokens") is not None:
        raise InvalidInput("The cap is the tenant's: no policy has one of its own.", field="daily_tokens")
    if policy is not None and policy.tenant_id != tenant_id:
        raise NotFound("there is no such policy")
    with transaction.atomic():
        row, _ = JudgeSettings.objects.get_or_create(tenant_id=tenant_id, policy=policy)
        for name, value in changes.items():
            setattr(row, name, "" if name == "personal_data" and value is None else value)
        try:
            given = {name for name, value in changes.items() if value is not None}
            others = [field.name for field in JudgeSettings._meta.fields if field.name not in given]  # noqa: SLF001
            row.full_clean(exclude=others, validate_unique=False, validate_constraints=False)
        except ValidationError as error:
            field, problems = next(iter(error.message_dict.items()))
            raise InvalidInput(" ".join(problems), field=field) from error
        row.save()
        audit.record(
            actor=actor,
            action="judging.change",
            target=f"policy:{policy.id}" if policy else f"tenant:{tenant_id}",
            tenant_id=tenant_id,
            detail=changes,
        )
    return row


def replay(*, judgement_id: uuid.UUID, actor: str) -> Judgement:
    """Give a dead letter its attempts back and ask the judge again."""
    with transaction.atomic():
        judgement = Judgement.objects.select_for_update().filter(id=judgement_id).first()
        if judgement is None:
            raise NotFound("there is no such judgement")
        if judgement.state != JudgementState.FAILED:
            raise Conflict(f"the judgement is {judgement.state}, not a dead letter")
        revive(judgement)
        ask_for_judgement(turn_id=judgement.turn_id, tenant_id=judgement.tenant_id)
        audit.record(
            actor=actor,
            action="judgement.replay",
            target=f"judgement:{judgement.id}",
            tenant_id=judgement.tenant_id,
        )
    return judgement


def revive(judgement: Judgement) -> None:
    """Make a dead letter (locked by the caller) pending again, with its attempts back."""
    judgement.state = JudgementState.PENDING
    judgement.attempts = 0
    judgement.reason = ""
    judgement.save(update_fields=["state", "attempts", "reason"])


def override(*, turn_id: uuid.UUID, reward: int, actor: str, reason: str) -> Judgement:
    """Put an operator's verdict (1, 0 or -1) in the place of every judge's;
    what a person who was there said still counts more.

    Audited. The judges' verdicts stay as rows; their hints no longer count.
    """
    if reward not in (-1, 0, 1):
        raise InvalidInput("A verdict is 1, 0 or -1.", field="reward")
    with transaction.atomic():
        turn = Turn.objects.select_for_update(of=("self",), no_key=True).filter(id=turn_id).first()
        if turn is None:
            raise NotFound("there is no such turn")
        why_not = why_not_judged(turn)
        if why_not or turn.state == TurnState.PENDING:
            raise Conflict(f"the turn is never judged: {why_not or 'pending'}")
        judgement = Judgement.objects.create(
            turn=turn,
            tenant_id=turn.tenant_id,
            judge=actor[:60],
            prompt_version="override",
            votes_asked=0,
            source=JudgementSource.OVERRIDE,
            state=JudgementState.SETTLED,
            reward=reward,
            reason=reason[:500],
            settled_at=timezone.now(),
        )
        ask_for_sample(turn_id=turn.id, tenant_id=turn.tenant_id)
        audit.record(
            actor=actor,
            action="judgement.override",
            target=f"turn:{turn.id}",
            tenant_id=turn.tenant_id,
            detail={"reward": reward, "reason": reason},
        )
    return judgement
