"""A policy's queue as its rows stand: what is under way, what waits, what was taken already."""

import datetime as dt
import uuid

from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q, QuerySet
from django.utils import timezone

from apps.adapters.models import Policy
from apps.conversations.models import Turn, TurnKind, TurnState
from apps.learning.config import TrainingConfig
from apps.learning.models import RewardBaseline, Sample, SampleState
from apps.learning.rules.batch import Entry, Order, places_seen, window_size
from kernel.ids import first_id_at

HOLDS_UP = dt.timedelta(hours=1)
"""A turn that is under way for longer than this is taken for lost: nothing waits for it any more."""
KINDS = (TurnKind.LIVE, TurnKind.ROLLOUT, TurnKind.SHADOW)
LEAST_SURPRISE = 0.05
"""A reward this near to what the policy is used to moves it no further than noise does."""


def order_of(config: TrainingConfig) -> Order:
    """Return how a policy's queue is taken from."""
    return Order(mode=config.order, window=window_size(config.buffer, config.window))


def waiting(policy: Policy, *, shadow: bool) -> QuerySet[Sample]:
    """Return the policy's samples that wait for a step: those of shadow replies, or all others.

    A batch is of one sort: a version that shadow replies taught is chosen, and may come to nothing; what
    people said of a reply must not be lost with it.
    """
    return Sample.objects.filter(_sort(shadow=shadow), policy=policy, state=SampleState.READY)


def _sort(*, shadow: bool) -> Q:
    return Q(source=TurnKind.SHADOW) if shadow else ~Q(source=TurnKind.SHADOW)


def under_way(policy_id: uuid.UUID) -> QuerySet[Turn]:
    """Return the policy's turns that may become samples soon: being written, or said enough of to be judged.

    A live turn that nobody answered yet is not among them, as nothing is at work on it; a rollout's is until
    its session is over. `attune_admit_rollout` counts the same.
    """
    return (
        Turn.objects.filter(policy_id=policy_id, kind__in=KINDS, side=False)
        .filter(id__gte=first_id_at(timezone.now() - HOLDS_UP))
        .filter(~Exists(Sample.objects.filter(turn=OuterRef("pk"))))
        .filter(
            Q(state=TurnState.PENDING)
            | Q(state=TurnState.COMPLETE, next_state_at__isnull=False)
            | Q(state=TurnState.COMPLETE, kind=TurnKind.ROLLOUT, session__idle_at__isnull=True)
        )
    )


def queue_of(policy: Policy, config: TrainingConfig, *, shadow: bool) -> list[Entry[uuid.UUID]]:
    """Return as much of one sort's queue, oldest beginning first, as a batch may come from.

    Keys are turns.
    """
    order = order_of(config)
    most = places_seen(order, config.batch_size)
    ready = waiting(policy, shadow=shadow)
    usual = RewardBaseline.objects.filter(policy=policy).first()
    mean = usual.state.get("mean") if usual else None
    fields = ("turn_id", "state", "created_at", "reward", "hinted")
    if order.mode == "greedy":
        rows = list(_hinted(ready).order_by("created_at", "id").values_list(*fields)[:most])
        return sorted((_entry(*row, config=config, mean=mean) for row in rows), key=lambda entry: entry.key)
    waits = list(ready.order_by("turn_id").values_list("turn_id", flat=True)[:most])
    if not waits:
        return []
    # shadow replies are samples as soon as they are turns
    opened = set() if shadow else set(under_way(policy.id).order_by("id").values_list("id", flat=True)[:most])
    near = sorted([*waits, *opened])[:most]
    # what was taken or dropped in between keeps its place, however many there are
    places = Sample.objects.filter(
        _sort(shadow=shadow),
        policy=policy,
        turn_id__gte=near[0],
        turn_id__lte=near[-1],
        state__in=(SampleState.READY, SampleState.CLAIMED, SampleState.CONSUMED, SampleState.DROPPED),
    )
    entries = [_entry(*row, config=config, mean=mean) for row in _hinted(places).values_list(*fields)]
    entries += [Entry(turn_id, "open") for turn_id in near if turn_id in opened]
    return sorted(entries, key=lambda entry: entry.key)


def _hinted(samples: QuerySet[Sample]) -> QuerySet[Sample]:
    """Add whether there is a hint: its prompt, of thousands of tokens,
    is not read for every place of a queue."""
    return samples.annotate(hinted=ExpressionWrapper(~Q(hints=[]), output_field=BooleanField()))


def _entry(
    turn_id: uuid.UUID,
    state: str,
    made_at: dt.datetime,
    reward: float | None,
    hinted: bool,  # noqa: FBT001
    *,
    config: TrainingConfig,
    mean: float | None,
) -> Entry[uuid.UUID]:
    surprising = reward is not None and (mean is None or abs(reward - mean) > LEAST_SURPRISE)
    signal = (surprising and config.method != "opd") or (hinted and config.method != "binary")
    return Entry(
        turn_id,
        "ready" if state == SampleState.READY else "done",
        ready_at=made_at.timestamp(),
        signal=signal,
    )
