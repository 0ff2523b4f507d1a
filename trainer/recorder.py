"""What a step has found so far: it becomes the report, however the step ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from trainer.contracts import (
    Artefact,
    BaselineState,
    InitRequest,
    Outcome,
    ProgressEvent,
    StepReport,
    StepRequest,
)
from trainer.learn import SampleTokens
from trainer.metrics import Metrics, finite, outcomes, staleness
from trainer.scoring import Tick
from trainer.signals import Signal

Notify = Callable[[ProgressEvent], None]
Phase = Literal["load", "teacher", "prox", "learn", "check", "write"]


@dataclass(slots=True)
class Recorder:
    """Metrics, times and what was seen of each sample; nothing in it steers the step."""

    request: StepRequest | InitRequest
    notify: Notify
    started: float = field(default_factory=time.perf_counter)
    seconds: dict[str, float] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=dict)
    seen: dict[int, SampleTokens] = field(default_factory=dict)
    signals: list[Signal] = field(default_factory=list)
    alone: bool = True
    """False where others were served in between: then only the phases count, not the clock."""

    @contextmanager
    def phase(self, name: Phase, total: int) -> Iterator[Tick]:
        """Times a phase and tells of its progress in units of `total`."""
        begun = time.perf_counter()
        done = 0

        def tick(more: int) -> None:
            nonlocal done
            done += more
            elapsed = time.perf_counter() - self.started
            self.notify(ProgressEvent(self.request.run_id, name, min(done, total), total, elapsed))

        tick(0)
        try:
            yield tick
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun

    def report(
        self,
        outcome: Outcome,
        code: str,
        reason: str,
        baseline: BaselineState,
        artefact: Artefact | None = None,
    ) -> StepReport:
        total = time.perf_counter() - self.started if self.alone else sum(self.seconds.values())
        return StepReport(
            run_id=self.request.run_id,
            outcome=outcome,
            code=code,
            reason=reason,
            metrics=finite(self.metrics),
            samples=outcomes(self.signals, self.seen),
            baseline=baseline,
            staleness=staleness(self.signals),
            seconds={**self.seconds, "total": total},
            artefact=artefact,
        )
