"""A virtual clock over policies, engines and trainers, with the schedule's own rules deciding."""

import heapq
import itertools
import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from apps.learning.rules.admission import Intake, room
from apps.learning.rules.batch import Entry, Order, places_seen, take
from apps.learning.rules.round_robin import Account, Fairness, charged, credited, in_turn, opened
from apps.learning.rules.staleness import Staleness, weight
from apps.learning.rules.trigger import called_for
from apps.learning.simulation.trace import Load

Event = Literal["arrive", "end", "step", "live", "clock"]


@dataclass(frozen=True, slots=True)
class Costs:
    """How long things take besides generation, seconds."""

    step_s: float
    """A training step of a whole batch."""
    publish_s: float
    """From the step's end until the version answers."""
    judge_s: float = 0.0
    """From a turn's end until its sample is ready."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is tried."""

    order: Order
    staleness: Staleness
    batch: int
    flush_s: float = math.inf
    fairness: Fairness = field(default_factory=lambda: Fairness(quantum_s=30.0, debt_s=3600.0))
    trainers: int = 1


@dataclass(slots=True)
class Turn:
    """One turn on its way from its beginning to a step."""

    number: int
    tenant: str
    duration_s: float
    began_s: float
    version: int
    ready_s: float = math.nan
    trained_s: float = math.nan
    staleness: int = -1
    dropped: bool = False


@dataclass(slots=True)
class _Policy:
    load: Load
    pending: Iterator[float]
    places: deque[Turn] = field(default_factory=deque)
    """From the oldest that is neither consumed nor dropped on, in the order of their beginnings."""
    version: int = 0
    running: int = 0
    waiting: int = 0
    open_run: bool = False
    publishing: bool = False
    refused: int = 0
    free_slots: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a trace went."""

    turns: Sequence[Turn]
    """Those that ended, in the order of their beginnings."""
    wall_s: float
    """Until the last of the wanted turns was trained (or nothing was left to do)."""
    steps: int
    refused: int
    """Rollouts that were not admitted when a slot was free."""

    @property
    def trained(self) -> list[Turn]:
        """Those that a step consumed."""
        return [turn for turn in self.turns if not math.isnan(turn.trained_s)]


class World:
    """Runs once. `enough` trained turns of all policies end it."""

    def __init__(self, loads: Sequence[Load], setting: Setting, costs: Costs, *, enough: float) -> None:
        self.setting, self.costs, self.enough = setting, costs, enough
        self.now, self.steps, self.trained = 0.0, 0, 0
        self._numbers = itertools.count()
        self._events: list[tuple[float, int, Event, object]] = []
        self._policies = {
            load.tenant: _Policy(load, iter(load.durations_s), free_slots=load.slots) for load in loads
        }
        self._accounts: dict[str, Account] = {}
        self._runs: dict[str, str] = {}
        """Queued runs, oldest first: tenant -> what called for it."""
        self._free = setting.trainers
        self._turns: list[Turn] = []

    def run(self) -> Outcome:
        """Play the trace and return how it went."""
        for policy in self._policies.values():
            for began_s, duration_s in policy.load.arrivals:
                self._at(began_s, "arrive", (policy, duration_s))
            self._fill(policy)
        while self._events and self.trained < self.enough:
            self.now, _, event, what = heapq.heappop(self._events)
            getattr(self, f"_on_{event}")(what)
        return Outcome(
            turns=self._turns,
            wall_s=self.now,
            steps=self.steps,
            refused=sum(policy.refused for policy in self._policies.values()),
        )

    def _at(self, moment: float, event: Event, what: object) -> None:
        heapq.heappush(self._events, (moment, next(self._numbers), event, what))

    def _begin(self, policy: _Policy, duration_s: float, *, holds_slot: bool) -> None:
        turn = Turn(len(self._turns), policy.load.tenant, duration_s, self.now, policy.version)
        self._turns.append(turn)
        policy.places.append(turn)
        policy.running += 1
        self._at(self.now + duration_s, "end", (policy, turn, holds_slot))

    def _fill(self, policy: _Policy) -> None:
        """Begin rollouts while slots are free and the schedule admits them."""
        while policy.free_slots:
            intake = Intake(policy.version, policy.waiting, policy.running)
            if room(intake, staleness=self.setting.staleness.most, batch=self.setting.batch) <= 0:
                policy.refused += 1
                return
            duration_s = next(policy.pending, None)
            if duration_s is None:
                return
            policy.free_slots -= 1
            self._begin(policy, duration_s, holds_slot=True)

    def _on_arrive(self, what: tuple[_Policy, float]) -> None:
        self._begin(*what, holds_slot=False)

    def _on_end(self, what: tuple[_Policy, Turn, bool]) -> None:
        policy, turn, holds_slot = what
        if holds_slot:
            policy.free_slots += 1
        # the judge holds no slot; to the queue the turn is under way until it is judged
        if math.isnan(turn.ready_s) and self.costs.judge_s:
            turn.ready_s = math.inf
            self._at(self.now + self.costs.judge_s, "end", (policy, turn, False))
            self._fill(policy)
            return
        policy.running -= 1
        policy.waiting += 1
        turn.ready_s = self.now
        if weight(policy.version - turn.version, self.setting.staleness) == 0.0:
            self._prune(policy)
        if math.isfinite(self.setting.flush_s):
            self._at(self.now + self.setting.flush_s, "clock", policy)
        self._fill(policy)
        self._consider(policy)

    def _on_clock(self, policy: _Policy) -> None:
        self._consider(policy)

    def _on_live(self, policy: _Policy) -> None:
        policy.version += 1
        policy.publishing = False
        self._prune(policy)
        self._fill(policy)
        self._consider(policy)

    def _entry(self, turn: Turn) -> Entry[int]:
        if turn.dropped or turn.staleness >= 0:  # too old, or taken
            return Entry(turn.number, "done")
        return Entry(turn.number, "ready" if turn.ready_s <= self.now else "open", ready_at=turn.ready_s)

    def _batch(self, policy: _Policy) -> list[Turn]:
        order, size = self.setting.order, self.setting.batch
        most = places_seen(order, size)
        if order.mode == "greedy":
            ready = [turn for turn in policy.places if self._entry(turn).state == "ready"]
            near = sorted(
                heapq.nsmallest(most, ready, key=lambda turn: turn.ready_s), key=lambda turn: turn.number
            )
        else:
            near = []
            for turn in policy.places:
                near.append(turn)
                most -= self._entry(turn).state != "done"
                if most == 0:
                    break
        return [self._turns[entry.key] for entry in take([self._entry(turn) for turn in near], order, size)]

    def _prune(self, policy: _Policy) -> None:
        """Drop what is too old; only a new version, or becoming ready at last, makes it so."""
        for turn in policy.places:
            age = policy.version - turn.version
            if weight(age, self.setting.staleness) == 0.0 and self._entry(turn).state == "ready":
                turn.dropped = True
                policy.waiting -= 1
        self._advance(policy)

    def _advance(self, policy: _Policy) -> None:
        while policy.places and (policy.places[0].dropped or not math.isnan(policy.places[0].trained_s)):
            policy.places.popleft()

    def _consider(self, policy: _Policy) -> None:
        enough = policy.waiting >= self.setting.batch or math.isfinite(self.setting.flush_s)
        if enough and not (policy.open_run or policy.publishing):
            batch = self._batch(policy)
            waited_s = self.now - min((turn.ready_s for turn in batch), default=math.inf)
            trigger = called_for(
                takeable=len(batch), waited_s=waited_s, batch=self.setting.batch, flush_s=self.setting.flush_s
            )
            if trigger is not None:
                policy.open_run = True
                self._runs[policy.load.tenant] = trigger
        self._dispatch()

    def _dispatch(self) -> None:
        """Give queued runs to free trainers, in the tenants' turns."""
        rules = self.setting.fairness
        while self._free and self._runs:
            waiting = {tenant: [tenant] for tenant in self._runs}
            accounts = {tenant: self._accounts.get(tenant) or opened(rules) for tenant in waiting}
            pick = next(in_turn(waiting, accounts, rules, now=self.now))
            for tenant, account in accounts.items():
                self._accounts[tenant] = credited(account, pick.rounds, rules)
            self._claim(self._policies[pick.tenant], self._runs.pop(pick.tenant))

    def _claim(self, policy: _Policy, trigger: str) -> None:
        batch = self._batch(policy)
        if not batch or (trigger == "threshold" and len(batch) < self.setting.batch):
            policy.open_run = False
            return
        for turn in batch:
            turn.staleness = policy.version - turn.version
        tenant = policy.load.tenant
        account = self._accounts[tenant]
        self._accounts[tenant] = replace(account, running=account.running + 1, served_at=self.now)
        self._free -= 1
        self._at(self.now + self.costs.step_s, "step", (policy, batch))

    def _on_step(self, what: tuple[_Policy, list[Turn]]) -> None:
        policy, batch = what
        for turn in batch:
            turn.trained_s = self.now
        self.steps += 1
        self.trained += len(batch)
        policy.waiting -= len(batch)
        policy.open_run, policy.publishing = False, True
        self._advance(policy)
        tenant = policy.load.tenant
        account = charged(self._accounts[tenant], self.costs.step_s, self.setting.fairness)
        self._accounts[tenant] = replace(account, running=account.running - 1)
        self._free += 1
        self._at(self.now + self.costs.publish_s, "live", policy)
        self._dispatch()


def synchronously(
    durations_s: Sequence[float], *, slots: int, batch: int, costs: Costs, enough: int
) -> float:
    """Return the seconds that the same work takes in turns:
    a batch is written and judged, then trained on and published while nothing is written, then the next."""
    now = 0.0
    for start in range(0, enough, batch):
        ends = [now] * slots
        heapq.heapify(ends)
        last = now
        for duration_s in durations_s[start : start + batch]:
            end = heapq.heappop(ends) + duration_s
            last = max(last, end)
            heapq.heappush(ends, end)
        now = last + costs.judge_s + costs.step_s + costs.publish_s
    return now
