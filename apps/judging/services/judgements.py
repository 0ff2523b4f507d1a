"""Judge a turn, once, whatever is delivered twice or dies in between."""

import datetime as dt
import logging
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from apps.accounts import pausing
from apps.adapters.models import Policy
from apps.conversations.models import Turn, TurnState
from apps.judging import spend
from apps.judging.backends import configured_judge
from apps.judging.eligibility import why_not_judged
from apps.judging.judge import (
    CastVote,
    Judge,
    JudgeUnavailable,
    Opinion,
    TurnView,
    select_hints,
    strict_majority,
)
from apps.judging.models import Hint, Judgement, JudgementSource, JudgementState, Vote
from apps.judging.personal_data import seen_by_judge
from apps.judging.rules import Rules, rules_of
from apps.judging.services.asking import ask_for_judgement, ask_for_sample
from kernel import clock
from kernel.locks import locked

logger = logging.getLogger(__name__)

ATTEMPTS = 3
BACKOFF_S = (5.0, 30.0)  # before the second and the third attempt
CLAIM_MARGIN_S = 15.0  # for what surrounds the judge's own deadline
MAX_VOTE_CHARACTERS = 20_000
SPEND_CAP = "spend cap"


@dataclass(frozen=True, slots=True)
class Identity:
    """What one judgement of a turn is told from another by."""

    judge: str
    prompt_version: str
    rubric_id: uuid.UUID | None
    votes_asked: int
    temperature: float


@dataclass(frozen=True, slots=True)
class _Claim:
    judgement: Judgement
    attempt: int
    view: TurnView


def identity_of(backend: Judge, rules: Rules) -> Identity:
    """Return what judgements by this judge under these rules are told from others by."""
    return Identity(
        judge=backend.name,
        prompt_version=backend.prompt_version,
        rubric_id=rules.rubric_id if backend.reads_rubric else None,
        votes_asked=backend.votes,
        temperature=backend.temperature,
    )


def judge(*, turn_id: uuid.UUID, backend: Judge | None = None) -> Judgement | None:
    """Ask the judge about a turn and settle the verdict; return the judgement, or None where there is none.

    Safe to call again and from several places at once: a judged turn stays as it is, and while somebody
    asks the judge nobody else does. While the tenant is paused it is asked for anew, which waits in the
    outbox. A judge that does not answer is asked again later, at most `ATTEMPTS` times; then the judgement is
    a dead letter (`failed`), and counts as neutral.
    """
    policy = Policy.objects.filter(turns=turn_id).first()
    if policy is None:
        return None
    if pausing.is_paused(policy.tenant_id):
        with transaction.atomic():
            ask_for_judgement(turn_id=turn_id, tenant_id=policy.tenant_id)
        return None
    rules = rules_of(policy)
    backend = backend or configured_judge(rules)
    judged = judge_all([turn_id], backend=backend, rules=rules)
    return judged[0] if judged else None


def judge_all(
    turn_ids: Sequence[uuid.UUID],
    *,
    backend: Judge,
    rules: Rules,
    again: Identity | None = None,
) -> list[Judgement]:
    """Judge turns of one policy at once; return the judgements that this caller made or put off.

    `again`: judge them under this identity whatever was made of them before; without it a turn that is
    judged is left alone. Neither a transaction nor a connection is held while the judge thinks.
    """
    identity = again or identity_of(backend, rules)
    claims: list[_Claim] = []
    for turn_id in turn_ids:
        claim = _claim(turn_id, backend=backend, rules=rules, identity=identity, again=again is not None)
        if claim is not None:
            claims.append(claim)
    if not claims:
        return []
    if not connection.in_atomic_block:
        connection.close()  # back to the pool: judges take their time
    opinions = _ask(backend, [seen_by_judge(claim.view, rules.personal_data) for claim in claims])
    done = [
        _settle(claim, opinion)
        if isinstance(opinion, Opinion)
        else _put_off(claim, opinion, announce=again is None)
        for claim, opinion in zip(claims, opinions, strict=True)
    ]
    return [judgement for judgement in done if judgement is not None]


def _ask(backend: Judge, views: Sequence[TurnView]) -> list[Opinion | JudgeUnavailable]:
    def one(view: TurnView) -> Opinion | JudgeUnavailable:
        try:
            return backend.judge(view)
        except JudgeUnavailable as error:
            return error

    if len(views) == 1 or not backend.most_tokens(views[0]):  # nobody is waited for: threads would not help
        return [one(view) for view in views]
    with ThreadPoolExecutor(max_workers=len(views), thread_name_prefix="judge") as threads:
        return list(threads.map(one, views))


def _claim(
    turn_id: uuid.UUID, *, backend: Judge, rules: Rules, identity: Identity, again: bool
) -> _Claim | None:
    """Return the turn's pending judgement, held for this caller; None where there is nothing to ask."""
    with transaction.atomic():
        # serialises those who look at the same turn
        turn = (
            Turn.objects.select_for_update(of=("self",), no_key=True)
            .select_related("session", "tenant", "policy")
            .filter(id=turn_id)
            .first()
        )
        if turn is None or turn.state == TurnState.PENDING:
            return None
        if why_not_judged(turn) or turn.next_state is None or turn.reply_edited:
            if not again:
                ask_for_sample(turn_id=turn.id, tenant_id=turn.tenant_id)
            return None
        judgement = _pending(turn, identity, again=again)
        now = clock.now()
        if judgement is None or (judgement.claimed_until is not None and judgement.claimed_until > now):
            return None
        spend.release(judgement)  # of a holder who died
        if judgement.attempts >= ATTEMPTS:
            # every holder died before it could say why
            _bury(judgement, judgement.reason or "nobody who asked the judge lived to tell")
            return None
        view = TurnView(
            request=tuple(turn.messages), reply=turn.reply or {}, next_state=tuple(turn.next_state or ())
        )
        most = backend.most_tokens(view)
        if most:
            day = spend.reserve(tenant_id=turn.tenant_id, tokens=most, cap=rules.daily_tokens)
            if day is None:
                _bury(judgement, f"{SPEND_CAP}: {rules.daily_tokens} judge tokens a day")
                return None
            judgement.reserved, judgement.reserved_on = most, day
        judgement.attempts += 1
        judgement.claimed_until = now + dt.timedelta(seconds=backend.deadline_s + CLAIM_MARGIN_S)
        judgement.save()
        return _Claim(judgement, judgement.attempts, view)


def _pending(turn: Turn, identity: Identity, *, again: bool) -> Judgement | None:
    """Return the judgement to be made of a locked turn, or None where it is made already."""
    stamp = {
        "judge": identity.judge,
        "prompt_version": identity.prompt_version,
        "rubric_id": identity.rubric_id,
        "votes_asked": identity.votes_asked,
        "temperature": identity.temperature,
    }
    rows = locked(Judgement.objects.filter(turn=turn, source=JudgementSource.JUDGE))
    same = rows.filter(**stamp).first()
    if same is not None:
        return same if same.state == JudgementState.PENDING else None
    if not again:
        made = list(rows)
        if any(row.state != JudgementState.PENDING for row in made):
            return None
        if made:  # the rules changed before anybody answered
            for name, value in stamp.items():
                setattr(made[0], name, value)
            return made[0]
    return Judgement.objects.create(turn=turn, tenant_id=turn.tenant_id, **stamp)


def _settle(claim: _Claim, opinion: Opinion) -> Judgement | None:
    reward, reason = strict_majority(opinion.votes)
    with transaction.atomic():
        judgement = _still_there(claim)
        settled = judgement is not None and judgement.state != JudgementState.SETTLED
        spend.book(tenant_id=claim.judgement.tenant_id, votes=opinion.votes, settled=settled)
        if judgement is None or not settled:
            return judgement
        _keep_votes(judgement, opinion.votes)
        Hint.objects.bulk_create(
            Hint(
                tenant_id=judgement.tenant_id,
                judgement=judgement,
                number=number,
                text=_storable(hint.text),
                accepted=not hint.refused,
                reason=hint.refused,
                by_user=hint.by_user,
            )
            for number, hint in enumerate(select_hints(opinion.hints), start=1)
        )
        spend.release(judgement)
        judgement.state = JudgementState.SETTLED
        judgement.reward = reward
        judgement.reason = reason
        judgement.claimed_until = None
        judgement.settled_at = timezone.now()
        judgement.save()
        ask_for_sample(turn_id=judgement.turn_id, tenant_id=judgement.tenant_id)
    return judgement


def _put_off(claim: _Claim, error: JudgeUnavailable, *, announce: bool) -> Judgement | None:
    """Ask again later, or give up after the last attempt."""
    with transaction.atomic():
        judgement = _still_there(claim)
        spend.book(tenant_id=claim.judgement.tenant_id, votes=error.votes, settled=False)
        if judgement is None:
            return None
        if judgement.state != JudgementState.PENDING or judgement.attempts != claim.attempt:
            return judgement
        _keep_votes(judgement, error.votes)
        if claim.attempt >= ATTEMPTS:
            _bury(judgement, error.message)
            return judgement
        spend.release(judgement)
        judgement.reason = error.message[:500]
        judgement.claimed_until = None
        judgement.save()
        if announce:
            ask_for_judgement(
                turn_id=judgement.turn_id,
                tenant_id=judgement.tenant_id,
                delay_s=BACKOFF_S[claim.attempt - 1],
            )
    return judgement


def _still_there(claim: _Claim) -> Judgement | None:
    """Return a claim's judgement, locked; None where its turn was erased while the judge thought."""
    judgement = Judgement.objects.select_for_update().filter(id=claim.judgement.id).first()
    if judgement is None:
        spend.release(claim.judgement)
    return judgement


def _bury(judgement: Judgement, reason: str) -> None:
    """Make a dead letter of a judgement; the turn goes on as a neutral one."""
    logger.warning("judgement %s of turn %s is a dead letter: %s", judgement.id, judgement.turn_id, reason)
    spend.release(judgement)
    judgement.state = JudgementState.FAILED
    judgement.reason = reason[:500]
    judgement.claimed_until = None
    judgement.save()
    ask_for_sample(turn_id=judgement.turn_id, tenant_id=judgement.tenant_id)


def _keep_votes(judgement: Judgement, votes: Sequence[CastVote]) -> None:
    before = judgement.votes.aggregate(last=Max("attempt"))["last"] or 0
    Vote.objects.bulk_create(
        Vote(
            tenant_id=judgement.tenant_id,
            judgement=judgement,
            attempt=before + 1,
            number=number,
            prompt_version=judgement.prompt_version,
            score=vote.score,
            text=_storable(vote.text)[:MAX_VOTE_CHARACTERS],
            abstained_because=vote.abstained_because[:200],
            latency_ms=vote.latency_ms,
            tokens=vote.tokens,
            prompt_tokens=vote.prompt_tokens,
        )
        for number, vote in enumerate(votes, start=1)
    )


def _storable(text: str) -> str:
    """Return text without what Postgres cannot hold (NUL, half surrogate pairs)."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
