"""How a hosted agent's attempts at tasks came out: what environments tell."""

import math
import uuid

from django.db import transaction
from django.utils import timezone

from apps.conversations.models import Session, Turn, TurnState
from apps.judging.models import MAX_REWARD, Trajectory
from apps.judging.services.asking import ask_for_sample
from kernel.errors import Conflict, InvalidInput, NotFound

LONGEST_NAME = 200


def open_trajectory(*, session_id: uuid.UUID, task: str, group: str) -> Trajectory:
    """Say that a session is an attempt at a task, before its first turn is judged;
    attempts of one `group` are compared.

    From then on its turns wait for the outcome (or the end of the session). The same again changes nothing;
    another task or group is a Conflict.
    """
    for name, value in (("task", task), ("group", group)):
        if not value.strip() or len(value) > LONGEST_NAME or "\x00" in value:
            raise InvalidInput(f"`{name}` is text of 1 to {LONGEST_NAME} characters.", field=name)
    with transaction.atomic():
        session = Session.objects.select_for_update(of=("self",), no_key=True).filter(id=session_id).first()
        if session is None:
            raise NotFound("there is no such session", field="session_id")
        trajectory, made = Trajectory.objects.get_or_create(
            session=session, defaults={"tenant_id": session.tenant_id, "task": task, "task_group": group}
        )
        if not made and (trajectory.task, trajectory.task_group) != (task, group):
            raise Conflict("the session is an attempt at another task", field="task")
    return trajectory


def record_outcome(*, session_id: uuid.UUID, outcome: float) -> Trajectory:
    """Say how an attempt ended; every turn of it then carries R_t = outcome + its process reward.

    The same again changes nothing; another outcome is a Conflict: what a step may have used is not taken
    back.
    """
    if isinstance(outcome, bool) or not math.isfinite(outcome) or abs(outcome) > MAX_REWARD:
        raise InvalidInput(f"`outcome` is a number from {-MAX_REWARD:g} to {MAX_REWARD:g}.", field="outcome")
    with transaction.atomic():
        trajectory = Trajectory.objects.select_for_update().filter(session_id=session_id).first()
        if trajectory is None:
            raise NotFound("the session is no attempt at a task", field="session_id")
        if trajectory.outcome is not None:
            if trajectory.outcome != float(outcome):
                raise Conflict(f"the outcome is {trajectory.outcome:g} already", field="outcome")
            return trajectory
        trajectory.outcome = float(outcome)
        trajectory.recorded_at = timezone.now()
        trajectory.save()
        turns = Turn.objects.filter(session_id=session_id).exclude(state=TurnState.PENDING)
        for turn_id in turns.order_by("id").values_list("id", flat=True):
            ask_for_sample(turn_id=turn_id, tenant_id=trajectory.tenant_id)
    return trajectory
