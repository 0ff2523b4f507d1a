"""How many rollouts may be under way, so that none is too old when its turn comes.

W. Fu et al., "AReaL: A Large-Scale Asynchronous Reinforcement Learning System" (2025), section 5.1: with
batches of B, version v and staleness bound η, generation is admitted while (η + v + 1)·B - (accepted +
running) > 0.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Intake:
    """A policy's counters. Every one of them is counted from rows, so a restart changes none."""

    version: int
    """v: steps along the lineage."""
    waiting: int
    """Samples that wait for a step or are in one."""
    running: int
    """Turns that are being written or judged."""

    def accepted(self, batch: int) -> int:
        """Return what was accepted so far. Each step counts as a whole batch, however few it was given.

        Were a small batch counted as it was, every step that the clock started would leave room for more, for
        ever.
        """
        return self.version * batch + self.waiting


def room(intake: Intake, *, staleness: int, batch: int) -> int:
    """Return how many more may be admitted; not above 0: none."""
    return (staleness + intake.version + 1) * batch - (intake.accepted(batch) + intake.running)
