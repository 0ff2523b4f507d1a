"""A trace out of the ledger: when a policy's turns began,
and how long each took until its sample was ready."""

from apps.adapters.models import Policy
from apps.conversations.models import Turn, TurnState
from apps.learning.simulation.trace import LONGEST_S, Load
from apps.learning.waiting import KINDS

SHORTEST_S = 0.001


def recorded(policy: Policy, *, slots: int, as_recorded: bool, limit: int) -> Load:
    """Return the newest `limit` turns of a policy as a trace, oldest first; empty where it has none.

    With `as_recorded` they come when they came; otherwise one after another into `slots`, as rollouts would.
    What took longer than half an hour is cut there: somebody went away.
    """
    rows = (
        Turn.objects.filter(policy=policy, kind__in=KINDS, side=False, state=TurnState.COMPLETE)
        .order_by("-id")
        .values_list("created_at", "completed_at", "sample__created_at")[:limit]
    )
    turns: list[tuple[float, float]] = []
    for began, ended, ready in reversed(rows):
        until = ready or ended
        if until is not None:
            seconds = min(max((until - began).total_seconds(), SHORTEST_S), LONGEST_S)
            turns.append((began.timestamp(), seconds))
    name = f"{policy.tenant.slug}/{policy.name}"
    if not as_recorded:
        return Load(name, durations_s=[seconds for _, seconds in turns], slots=slots)
    first = turns[0][0] if turns else 0.0
    return Load(name, arrivals=[(began - first, seconds) for began, seconds in turns])
