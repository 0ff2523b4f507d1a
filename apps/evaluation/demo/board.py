"""What everybody in the demo looks at: the ledger's figures, the scores so far, the clock."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError, close_old_connections

from apps.evaluation.choice import Score
from apps.evaluation.demo.ledger import Facts
from apps.evaluation.measure import Measurement

REFRESH_S = 1.0


@dataclass(slots=True)
class Board:
    """Written by one task each: facts by `watch`, measurements and phase by the demo."""

    read: Callable[[], Facts]
    """Asks the ledger; runs in a thread."""
    budget_s: float
    talk_until_s: float = 0.0
    """When the talk must end, so that the rest still fits into the budget."""
    started: float = field(default_factory=time.monotonic)
    facts: Facts = field(default_factory=Facts)
    phase: str = ""
    measured: dict[int, Measurement] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self.started

    @property
    def scores(self) -> dict[int, Score]:
        """Validation score of every version that was measured:
        replies to the user's taste that are on topic."""
        return {number: measurement.choice_score for number, measurement in self.measured.items()}

    def note(self, text: str) -> None:
        """Add a line for the reader."""
        self.notes.append(text)

    async def watch(self, seen: Callable[[], None]) -> None:
        """Refresh the facts every second, until cancelled; a database that restarts is waited for."""
        while True:
            try:
                self.facts = await sync_to_async(self.read)()
            except (OperationalError, InterfaceError):
                await sync_to_async(close_old_connections)()
            seen()
            await asyncio.sleep(REFRESH_S)
