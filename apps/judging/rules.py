"""By which rules a policy's turns are judged: its own, else its tenant's, else the deployment's."""

import uuid
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Q

from apps.adapters.models import Policy
from apps.judging.models import JudgeSettings, PersonalData, Rubric


@dataclass(frozen=True, slots=True)
class Rules:
    """What shapes a judgement besides the judge itself."""

    votes: int
    """Count."""
    temperature: float
    """Of the judge model."""
    daily_tokens: int
    """Judge tokens of the tenant's day; 0 is no cap."""
    personal_data: PersonalData = PersonalData.OFF
    """What is done where personal data is found."""
    rubric_id: uuid.UUID | None = None
    """The active rubric; None: the built-in one."""
    rubric: str = ""
    """Its text."""


def rules_of(policy: Policy) -> Rules:
    """Return the rules for a policy. Two queries."""
    rows = {row.policy_id: row for row in JudgeSettings.objects.filter(_own_or_tenants(policy))}
    levels = [row for row in (rows.get(policy.id), rows.get(None)) if row is not None]
    rubric = active_rubric(policy)
    return Rules(
        votes=next((row.votes for row in levels if row.votes is not None), settings.JUDGE_VOTES),
        temperature=next(
            (row.temperature for row in levels if row.temperature is not None), settings.JUDGE_TEMPERATURE
        ),
        daily_tokens=next(
            (row.daily_tokens for row in levels if row.daily_tokens is not None), settings.JUDGE_DAILY_TOKENS
        ),
        personal_data=PersonalData(
            next((row.personal_data for row in levels if row.personal_data), PersonalData.OFF)
        ),
        rubric_id=rubric.id if rubric else None,
        rubric=rubric.text if rubric else "",
    )


def rules_of_tenant(tenant_id: uuid.UUID) -> Rules:
    """Return the rules for a policy that has none of its own."""
    return rules_of(Policy(id=uuid.UUID(int=0), tenant_id=tenant_id))


def active_rubric(policy: Policy) -> Rubric | None:
    """Return the newest rubric of a policy; where it has none or an empty one,
    its tenant's; None: the built-in one."""
    rows = Rubric.objects.filter(_own_or_tenants(policy)).order_by("policy_id", "-number")
    newest = {row.policy_id: row for row in rows.distinct("policy_id")}
    levels = (newest.get(policy.id), newest.get(None))
    return next((row for row in levels if row is not None and row.text), None)


def _own_or_tenants(policy: Policy) -> Q:
    return Q(tenant_id=policy.tenant_id) & (Q(policy_id=policy.id) | Q(policy_id=None))
