"""Fill the ledger: judged turns, samples, runs, without engine, broker or trainer."""

import uuid
from typing import Any

from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from apps.adapters.models import AdapterVersion
from apps.conversations.models import Session, Turn, TurnKind, TurnState
from apps.judging.models import Hint, Judgement, JudgementState
from apps.learning.commits import Files, StepResult
from apps.learning.models import Sample, TrainingRun
from apps.learning.runs import Claim
from kernel.models import OutboxMessage
from kernel.tenancy import system_scope, tenant_scope
from tests.chat_model import END, ids_of
from tests.tenants import Somebody

REPLY = "A comet is a ball of ice and dust."
HINT = "Answer in one short sentence."


def add_turn(somebody: Somebody, *, question: str = "What is a comet?", **fields: Any) -> Turn:
    """Store a complete turn that has its next state; `fields` override."""
    ids = [*ids_of(REPLY), END]
    now = timezone.now()
    with tenant_scope(somebody.tenant.id):
        session = fields.pop("session", None) or Session.objects.create(
            user=somebody.user, policy=somebody.policy, last_turn_at=now
        )
        return Turn.objects.create(
            **{
                "session": session,
                "key": somebody.key,
                "policy": somebody.policy,
                "kind": TurnKind.LIVE,
                "state": TurnState.COMPLETE,
                "messages": [{"role": "user", "content": question}],
                "sampling": {"temperature": 0.7},
                "prompt_ids": ids_of(question),
                "request_hash": uuid.uuid4().hex.ljust(64, "0"),
                "body_sha256": "0" * 64,
                "reply": {"role": "assistant", "content": REPLY},
                "output_ids": ids,
                "output_logprobs": [-0.5] * len(ids),
                "spans": [[0, "base"]],
                "finish_reason": "stop",
                "completed_at": now,
                "next_state": [{"role": "user", "content": "Too long."}],
                "next_state_at": now,
                **fields,
            }
        )


def settle(
    turn: Turn, *, reward: int = -1, hints: tuple[str, ...] = (HINT,), by_user: bool = True
) -> Judgement:
    """Store a settled judgement of a turn; `by_user`: its hints rest on what the person said alone."""
    with tenant_scope(turn.tenant_id):
        judgement = Judgement.objects.create(
            turn=turn,
            judge="test",
            prompt_version="1",
            state=JudgementState.SETTLED,
            reward=reward,
            settled_at=timezone.now(),
        )
        for number, text in enumerate(hints, start=1):
            Hint.objects.create(judgement=judgement, number=number, text=text, accepted=True, by_user=by_user)
    return judgement


def add_samples(
    somebody: Somebody, count: int, *, version: AdapterVersion | None = None, source: str = "live"
) -> list[Sample]:
    """Store ready samples of judged turns, oldest first, without starting a run;
    shadow ones teach no wish."""
    said = "" if source == "shadow" else HINT
    made = []
    for number in range(count):
        turn = add_turn(somebody, question=f"What is comet {number}?", version=version)
        with tenant_scope(somebody.tenant.id):
            made.append(
                Sample.objects.create(
                    policy=somebody.policy,
                    turn=turn,
                    source=source,
                    reward=-1.0,
                    version=version,
                    hints=[{"text": said, "prompt_ids": ids_of(f"What is comet {number}? {HINT}")}],
                )
            )
    return made


def made(claim: Claim, directory: str, sha256: str) -> StepResult:
    """What a trainer answers that made a version."""
    return StepResult(
        outcome="made",
        code="ok",
        reason="a version was written",
        metrics={"loss": 0.5},
        sample_outcomes={str(sample.id): {"parts": ["opd"]} for sample in claim.samples},
        baseline={"mean": -1.0, "count": 1.0, "prior_mean": None},
        files=Files(dir=directory, sha256=sha256, rank=16, alpha=32),
    )


def queue_run(somebody: Somebody, trigger: str = "threshold") -> TrainingRun:
    """Queue a run of the policy."""
    from apps.learning import schedule

    with tenant_scope(somebody.tenant.id), transaction.atomic():
        run = schedule.create_run(somebody.policy, trigger)
    assert run is not None
    return run


def runs_of(somebody: Somebody) -> list[TrainingRun]:
    with tenant_scope(somebody.tenant.id):
        return list(TrainingRun.objects.order_by("created_at"))


def states_of(somebody: Somebody) -> dict[str, int]:
    """Return how many samples are in each state, zeros left out."""
    with tenant_scope(somebody.tenant.id):
        samples = Sample.objects.filter(policy=somebody.policy)
        return dict(samples.order_by().values_list("state").annotate(n=Count("id")))


def unsent(task: str) -> list[OutboxMessage]:
    """Return the unsent messages of a task, oldest first."""
    with system_scope("look"):
        return list(OutboxMessage.objects.filter(task=task, sent_at__isnull=True).order_by("id"))
