"""What is announced to workers: always in the caller's transaction."""

import uuid

from kernel import outbox


def ask_for_judgement(*, turn_id: uuid.UUID, tenant_id: uuid.UUID, delay_s: float = 0.0) -> None:
    """Announce that a turn is to be judged."""
    outbox.enqueue(
        task="workers.judging.judge_turn",
        queue="judge",
        tenant_id=tenant_id,
        kwargs={"turn_id": str(turn_id)},
        dedupe_key=f"judge:{turn_id}",
        delay_s=delay_s,
    )


def ask_for_sample(*, turn_id: uuid.UUID, tenant_id: uuid.UUID) -> None:
    """Announce that a turn's worth is known."""
    outbox.enqueue(
        task="workers.samples.make_sample",
        queue="judge",
        tenant_id=tenant_id,
        kwargs={"turn_id": str(turn_id)},
        dedupe_key=f"sample:{turn_id}",
    )


def ask_to_rejudge(*, rejudging_id: uuid.UUID, tenant_id: uuid.UUID, delay_s: float = 0.0) -> None:
    """Announce that a window has turns left to be judged again."""
    outbox.enqueue(
        task="workers.judging.rejudge",
        queue="judge",
        tenant_id=tenant_id,
        kwargs={"rejudging_id": str(rejudging_id)},
        dedupe_key=f"rejudge:{rejudging_id}",
        delay_s=delay_s,
    )
