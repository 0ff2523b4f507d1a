"""When a policy makes a step, and of which samples.

One policy has at most one open run (a partial unique index decides between several who try). The next run
starts when the version that the last one made is decided (live, ready or refused), so every step starts from the live one.
"""

import datetime as dt
import logging
import uuid
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import Min
from django.utils import timezone

from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.judging.reasons import Reason
from apps.learning.config import TrainingConfig, resolve
from apps.learning.drift.pauses import why_paused
from apps.learning.lineage import Lineage
from apps.learning.models import OPEN_RUN_STATES, RunState, Sample, SampleState, TrainingRun
from apps.learning.rules.batch import Entry, take
from apps.learning.rules.staleness import Staleness, weight
from apps.learning.rules.trigger import called_for
from apps.learning.waiting import order_of, queue_of, waiting
from apps.learning.withdrawn import keep_no_words, withdraw
from kernel import outbox
from kernel.errors import InvalidInput
from kernel.locks import locked

logger = logging.getLogger(__name__)

FAILED_PAUSE_S = 30.0  # after a failed run; doubles with each one in a row
FAILED_PAUSE_MAX_S = 1800.0


def consider(*, policy_id: uuid.UUID, quiet: bool = False) -> TrainingRun | None:
    """Start a run if a batch waits and nothing is in its way; return it, or None. Must run in a transaction.

    `quiet`: shadow replies for a step are to be asked for next.
    """
    # in READ COMMITTED two who each add a sample would not see the other's: one at a time
    policy = (
        Policy.objects.select_for_update(of=("self",), no_key=True).select_related("tenant").get(id=policy_id)
    )
    if not (policy.training_enabled and policy.tenant.training_enabled):
        return None
    if policy.tenant.is_paused or why_paused(policy.id):
        return None
    try:
        config = resolve(policy.config)
    except InvalidInput as error:
        logger.warning("policy %s is not trained: %s", policy.id, error.message)
        return None
    if due(policy, config, quiet=quiet) is None or _blocked(policy):
        return None
    prune(policy, config)
    trigger = due(policy, config, quiet=quiet)
    return None if trigger is None else create_run(policy, trigger)


def create_run(policy: Policy, trigger: str) -> TrainingRun | None:
    """Queue a run and announce it, in the caller's transaction; None where the policy has an open one."""
    try:
        with transaction.atomic():
            run = TrainingRun.objects.create(tenant_id=policy.tenant_id, policy=policy, trigger=trigger)
    except IntegrityError:
        return None
    announce(run)
    return run


def announce(run: TrainingRun, *, delay_s: float = 0.0) -> None:
    """Wake a trainer for a queued run, in the caller's transaction."""
    outbox.enqueue(
        task="workers.training.train",
        queue="train",
        tenant_id=run.tenant_id,
        kwargs={"run_id": str(run.id)},
        dedupe_key=f"train:{run.id}",
        delay_s=delay_s,
    )


def due(policy: Policy, config: TrainingConfig, *, quiet: bool = False) -> str | None:
    """Return what calls for a run now: "threshold" (a whole batch), "clock" (the oldest waited), or None.

    `quiet` as in `consider`.
    """
    call = _call(policy, config, quiet=quiet, at=timezone.now())
    return None if call is None else call.trigger


@dataclass(frozen=True, slots=True)
class _Call:
    trigger: str
    shadow: bool
    """Whose samples called: those of shadow replies, or people's own."""


def _call(policy: Policy, config: TrainingConfig, *, quiet: bool, at: dt.datetime) -> _Call | None:
    """Return what calls for a run, `at` a moment, and which sort it is of.

    A batch is of people's own samples or of shadow ones (`waiting`). A step of shadow ones makes those of
    people older, which wait for more of their kind meanwhile: before the one that would make them too old
    they go, however few.
    """
    own = _called_for(policy, config, shadow=False, at=at)
    if own is not None:
        return _Call(own, shadow=False)
    shadows = _called_for(policy, config, shadow=True, at=at)
    if (quiet or shadows is not None) and _is_pressed(policy, config):
        return _Call("clock", shadow=False)
    return None if shadows is None else _Call(shadows, shadow=True)


def _called_for(policy: Policy, config: TrainingConfig, *, shadow: bool, at: dt.datetime) -> str | None:
    ready = waiting(policy, shadow=shadow)
    oldest = ready.aggregate(oldest=Min("created_at"))["oldest"]
    if oldest is None:
        return None
    waited_s = (at - oldest).total_seconds()
    if waited_s < config.flush_s and ready.count() < config.batch_size:
        return None
    takeable = len(_next(policy, config, shadow=shadow))
    return called_for(takeable=takeable, waited_s=waited_s, batch=config.batch_size, flush_s=config.flush_s)


def _is_pressed(policy: Policy, config: TrainingConfig) -> bool:
    """Return whether one step more would make some of people's own samples older than what counts fully."""
    lineage = Lineage(policy.live)
    versions = waiting(policy, shadow=False).order_by().values_list("version_id", flat=True).distinct()
    ages = (lineage.staleness(version_id) for version_id in versions)
    oldest = max((age for age in ages if age is not None), default=0)
    return oldest >= config.max_staleness and bool(_next(policy, config, shadow=False))


def _next(policy: Policy, config: TrainingConfig, *, shadow: bool) -> list[Entry[uuid.UUID]]:
    return take(queue_of(policy, config, shadow=shadow), order_of(config), config.batch_size)


def prune(policy: Policy, config: TrainingConfig) -> Lineage:
    """Set aside the waiting samples that may teach no more or are of no use;
    return the lineage that the others stand on."""
    withdraw(policy)
    lineage = Lineage(policy.live)
    rules = staleness_rules(config)
    waiting = Sample.objects.filter(policy=policy, state=SampleState.READY)
    for version_id in waiting.order_by().values_list("version_id", flat=True).distinct():
        staleness = lineage.staleness(version_id)
        if staleness is not None and weight(staleness, rules) > 0.0:
            continue
        # whoever writes one of them anew holds it and waits for this policy
        useless = locked(waiting.filter(version_id=version_id), skip_locked=True)
        ids = list(useless.values_list("id", flat=True))
        keep_no_words(ids)
        if staleness is None:
            Sample.objects.filter(id__in=ids).update(
                state=SampleState.INELIGIBLE, reason=Reason.OTHER_BRANCH.say()
            )
        else:
            Sample.objects.filter(id__in=ids).update(
                state=SampleState.DROPPED,
                staleness=staleness,
                reason=Reason.STALE.say(f"{staleness} steps, at most {config.max_staleness}"),
            )
    return lineage


def pick(
    policy: Policy, config: TrainingConfig, lineage: Lineage, *, run: TrainingRun | None = None
) -> list[Sample]:
    """Return the next batch, locked, oldest beginning first, with its staleness and weights set (not saved).

    Of people's own samples or, where there are none, of shadow ones. A `run` that is there for a whole batch
    takes the sort of which one is there; one that the clock called for, the sort that waited so long by then:
    the other goes on waiting.
    A sample's staleness counts from the version of its first token, which wrote all of it: a request keeps
    its version.
    """
    trigger = run.trigger if run is not None else ""
    if run is not None and trigger == "clock":
        # as of when it was called for: the clock of who takes it may be wrong
        call = _call(policy, config, quiet=True, at=run.created_at)
        return [] if call is None else _picked(policy, config, lineage, shadow=call.shadow)
    own = _picked(policy, config, lineage, shadow=False)
    if len(own) >= (config.batch_size if trigger == "threshold" else 1):
        return own
    return _picked(policy, config, lineage, shadow=True) or own


def _picked(policy: Policy, config: TrainingConfig, lineage: Lineage, *, shadow: bool) -> list[Sample]:
    chosen = _next(policy, config, shadow=shadow)
    rows = (
        Sample.objects.select_for_update(of=("self",), skip_locked=True)
        .filter(policy=policy, state=SampleState.READY, turn_id__in=[entry.key for entry in chosen])
        .select_related("turn")
        .order_by("turn_id")
    )
    samples = []
    for sample in rows:
        staleness = lineage.staleness(sample.version_id)
        if staleness is None or weight(staleness, staleness_rules(config)) == 0.0:
            continue  # written anew since the queue was pruned
        sample.staleness = staleness
        sample.weight = weight(staleness, staleness_rules(config))
        samples.append(sample)
    return samples


def staleness_rules(config: TrainingConfig) -> Staleness:
    """Return η and what happens past it."""
    return Staleness(most=config.max_staleness, past=config.past_staleness)


def _blocked(policy: Policy) -> bool:
    """Whether a run is open, a version is on its way to be live, or the last runs failed just now."""
    if TrainingRun.objects.filter(policy=policy, state__in=OPEN_RUN_STATES).exists():
        return True
    if awaits_publishing(policy):
        return True
    recent = (
        TrainingRun.objects.filter(policy=policy).order_by("-created_at").values_list("state", "finished_at")
    )
    failures = 0
    last: dt.datetime | None = None
    for state, finished_at in recent[:10]:
        if state != RunState.FAILED:
            break
        failures += 1
        last = last or finished_at
    if last is None:
        return False
    pause = min(FAILED_PAUSE_S * 2.0 ** (failures - 1), FAILED_PAUSE_MAX_S)
    return timezone.now() < last + dt.timedelta(seconds=pause)


def awaits_publishing(policy: Policy) -> bool:
    """Whether a version is on its way: made, and neither ready nor refused yet."""
    return AdapterVersion.objects.filter(policy=policy, state=VersionState.CREATED).exists()
