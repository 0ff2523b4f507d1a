"""Judge a turn, once, whatever is delivered twice or dies in between."""

import datetime as dt
import logging
import uuid

from django.db import transaction
from django.utils import timezone

from apps.conversations.models import Turn, TurnState
from apps.judging.backends import configured_judge
from apps.judging.eligibility import why_not_judged
from apps.judging.judge import Judge, JudgeUnavailable, Opinion, TurnView, select_hints, strict_majority
from apps.judging.models import Hint, Judgement, JudgementState, Vote
from kernel import audit, outbox
from kernel.errors import Conflict, NotFound

logger = logging.getLogger(__name__)

ATTEMPTS = 3
BACKOFF_S = (5.0, 30.0)  # before the second and the third attempt
CLAIM_MARGIN_S = 15.0  # for what surrounds the judge's own deadline
MAX_VOTE_CHARACTERS = 20_000


def judge(*, turn_id: uuid.UUID, backend: Judge | None = None) -> Judgement | None:
    """Ask the judge about a turn and settle the verdict; return the judgement, or None where there is none.

    Safe to call again and from several places at once: a settled judgement stays as it is, and while
    somebody asks the judge nobody else does. A judge that does not answer is asked again later, at most
    `ATTEMPTS` times; then the judgement is a dead letter (`failed`), and counts as neutral.
    """
    backend = backend or configured_judge()
    judgement = _claim(turn_id=turn_id, backend=backend)
    if judgement is None:
        return None
    turn = judgement.turn
    view = TurnView(
        request=tuple(turn.messages), reply=turn.reply or {}, next_state=tuple(turn.next_state or ())
    )
    try:
        opinion = backend.judge(view)
    except JudgeUnavailable as error:
        return _put_off(judgement_id=judgement.id, attempt=judgement.attempts, reason=error.message)
    return _settle(judgement_id=judgement.id, opinion=opinion)


def replay(*, judgement_id: uuid.UUID, actor: str) -> Judgement:
    """Give a dead letter its attempts back and ask the judge again."""
    with transaction.atomic():
        judgement = Judgement.objects.select_for_update().filter(id=judgement_id).first()
        if judgement is None:
            raise NotFound("there is no such judgement")
        if judgement.state != JudgementState.FAILED:
            raise Conflict(f"the judgement is {judgement.state}, not a dead letter")
        judgement.state = JudgementState.PENDING
        judgement.attempts = 0
        judgement.reason = ""
        judgement.save(update_fields=["state", "attempts", "reason"])
        ask_for_judgement(turn_id=judgement.turn_id, tenant_id=judgement.tenant_id)
        audit.record(
            actor=actor,
            action="judgement.replay",
            target=f"judgement:{judgement.id}",
            tenant_id=judgement.tenant_id,
        )
    return judgement


def ask_for_judgement(*, turn_id: uuid.UUID, tenant_id: uuid.UUID, delay_s: float = 0.0) -> None:
    """Announce, in the caller's transaction, that a turn is to be judged."""
    outbox.enqueue(
        task="workers.judging.judge_turn",
        queue="judge",
        tenant_id=tenant_id,
        kwargs={"turn_id": str(turn_id)},
        dedupe_key=f"judge:{turn_id}",
        delay_s=delay_s,
    )


def ask_for_sample(*, turn_id: uuid.UUID, tenant_id: uuid.UUID) -> None:
    """Announce, in the caller's transaction, that a turn's worth is known."""
    outbox.enqueue(
        task="workers.samples.make_sample",
        queue="judge",
        tenant_id=tenant_id,
        kwargs={"turn_id": str(turn_id)},
        dedupe_key=f"sample:{turn_id}",
    )


def _claim(*, turn_id: uuid.UUID, backend: Judge) -> Judgement | None:
    """Return the turn's pending judgement, held for this caller; None where there is nothing to ask."""
    with transaction.atomic():
        turn = Turn.objects.select_related("policy").filter(id=turn_id).first()
        if turn is None or turn.state == TurnState.PENDING:
            return None
        if why_not_judged(turn) or turn.next_state is None:
            ask_for_sample(turn_id=turn.id, tenant_id=turn.tenant_id)
            return None
        made, _ = Judgement.objects.get_or_create(
            turn=turn,
            judge=backend.name,
            prompt_version=backend.prompt_version,
            defaults={"tenant_id": turn.tenant_id},
        )
        judgement = Judgement.objects.select_for_update().get(id=made.id)
        now = timezone.now()
        if judgement.state != JudgementState.PENDING or (
            judgement.claimed_until is not None and judgement.claimed_until > now
        ):
            return None
        if judgement.attempts >= ATTEMPTS:
            # every holder died before it could say why
            _bury(judgement, judgement.reason or "nobody who asked the judge lived to tell")
            return None
        judgement.attempts += 1
        judgement.claimed_until = now + dt.timedelta(seconds=backend.deadline_s + CLAIM_MARGIN_S)
        judgement.save(update_fields=["attempts", "claimed_until"])
        judgement.turn = turn
        return judgement


def _settle(*, judgement_id: uuid.UUID, opinion: Opinion) -> Judgement:
    reward, reason = strict_majority(opinion.votes)
    with transaction.atomic():
        judgement = Judgement.objects.select_for_update().get(id=judgement_id)
        if judgement.state == JudgementState.SETTLED:
            return judgement
        Vote.objects.bulk_create(
            Vote(
                tenant_id=judgement.tenant_id,
                judgement=judgement,
                number=number,
                score=vote.score,
                text=_storable(vote.text)[:MAX_VOTE_CHARACTERS],
                abstained_because=vote.abstained_because[:200],
                latency_ms=vote.latency_ms,
                tokens=vote.tokens,
            )
            for number, vote in enumerate(opinion.votes, start=1)
        )
        Hint.objects.bulk_create(
            Hint(
                tenant_id=judgement.tenant_id,
                judgement=judgement,
                number=number,
                text=_storable(hint.text),
                accepted=not hint.refused,
                reason=hint.refused,
            )
            for number, hint in enumerate(select_hints(opinion.hints), start=1)
        )
        judgement.state = JudgementState.SETTLED
        judgement.reward = reward
        judgement.reason = reason
        judgement.claimed_until = None
        judgement.settled_at = timezone.now()
        judgement.save()
        ask_for_sample(turn_id=judgement.turn_id, tenant_id=judgement.tenant_id)
    return judgement


def _put_off(*, judgement_id: uuid.UUID, attempt: int, reason: str) -> Judgement:
    """Ask again later, or give up after the last attempt."""
    with transaction.atomic():
        judgement = Judgement.objects.select_for_update().get(id=judgement_id)
        if judgement.state != JudgementState.PENDING or judgement.attempts != attempt:
            return judgement
        if attempt >= ATTEMPTS:
            _bury(judgement, reason)
            return judgement
        judgement.reason = reason[:500]
        judgement.claimed_until = None
        judgement.save(update_fields=["reason", "claimed_until"])
        ask_for_judgement(
            turn_id=judgement.turn_id, tenant_id=judgement.tenant_id, delay_s=BACKOFF_S[attempt - 1]
        )
    return judgement


def _bury(judgement: Judgement, reason: str) -> None:
    """Make a dead letter of a judgement; the turn goes on as a neutral one."""
    logger.warning("judgement %s of turn %s is a dead letter: %s", judgement.id, judgement.turn_id, reason)
    judgement.state = JudgementState.FAILED
    judgement.reason = reason[:500]
    judgement.claimed_until = None
    judgement.save(update_fields=["state", "reason", "claimed_until"])
    ask_for_sample(turn_id=judgement.turn_id, tenant_id=judgement.tenant_id)


def _storable(text: str) -> str:
    """Return text without what Postgres cannot hold (NUL, half surrogate pairs)."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
