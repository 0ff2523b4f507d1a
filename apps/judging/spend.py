"""What judging may cost a tenant in a day (UTC), kept by single statements:
no two judgements share the last tokens.

Before a judge is asked, the most that the answer can cost is set aside; afterwards what it did cost is
booked. A judgement that finds no room is not made. It does not wait for the next day: a tenant over its cap
would start every day with yesterday's stale turns and never catch up. The dead letter says "spend cap" and
can be replayed, and a window can be judged again, once there is room.
"""

import datetime as dt
import uuid

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from apps.judging.judge import CastVote
from apps.judging.models import Judgement, JudgeSpend


def reserve(*, tenant_id: uuid.UUID, tokens: int, cap: int) -> dt.date | None:
    """Set tokens aside in today's spend and return the day,
    or None where the cap has no room for them (counted).

    `cap` 0 is none. Runs in the caller's transaction.
    """
    day = timezone.now().date()
    JudgeSpend.objects.bulk_create([JudgeSpend(tenant_id=tenant_id, day=day)], ignore_conflicts=True)
    today = JudgeSpend.objects.filter(tenant_id=tenant_id, day=day)
    roomy = today
    if cap:
        roomy = today.alias(
            after=F("reserved") + F("prompt_tokens") + F("completion_tokens") + tokens
        ).filter(after__lte=cap)
    if roomy.update(reserved=F("reserved") + tokens):
        return day
    today.update(refused=F("refused") + 1)
    return None


def release(judgement: Judgement) -> None:
    """Give back what a judgement (locked by the caller, who saves it) had set aside."""
    if judgement.reserved and judgement.reserved_on is not None:
        JudgeSpend.objects.filter(tenant_id=judgement.tenant_id, day=judgement.reserved_on).update(
            reserved=F("reserved") - judgement.reserved
        )
        judgement.reserved = 0
        judgement.reserved_on = None


def book(*, tenant_id: uuid.UUID, votes: tuple[CastVote, ...], settled: bool) -> None:
    """Add what votes did cost to today's spend. Runs in the caller's transaction."""
    prompt = sum(vote.prompt_tokens for vote in votes)
    completion = sum(vote.tokens for vote in votes)
    if not (prompt or completion):
        return
    day = timezone.now().date()
    JudgeSpend.objects.bulk_create([JudgeSpend(tenant_id=tenant_id, day=day)], ignore_conflicts=True)
    JudgeSpend.objects.filter(tenant_id=tenant_id, day=day).update(
        prompt_tokens=F("prompt_tokens") + prompt,
        completion_tokens=F("completion_tokens") + completion,
        cost_micros=F("cost_micros")
        + round(prompt * settings.JUDGE_PRICE_PROMPT + completion * settings.JUDGE_PRICE_COMPLETION),
        judgements=F("judgements") + int(settled),
        abstained=F("abstained") + sum(vote.score is None for vote in votes),
    )
