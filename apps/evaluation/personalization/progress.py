"""What a person sees while a benchmark runs:
a line for whatever is found out, and how long the rest will take."""

import time
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from apps.evaluation.personalization.estimate import estimate
from apps.evaluation.personalization.journal import Line, Past
from apps.evaluation.personalization.plan import Plan, RunKey


class Screen:
    """Prints lines; on a terminal the last one says what is left.

    `past` is what the journal knew at the start.
    """

    def __init__(self, console: Console, plan: Plan, past: Mapping[RunKey, Past]) -> None:
        self._console = console
        self._plan = plan
        self._past = dict(past)
        self._began = time.monotonic()
        self._status = Status("", console=console)

    def __enter__(self) -> "Screen":
        if self._console.is_terminal:
            self._status.start()
            self._status.update(escape(self.left()))
        return self

    def __exit__(self, *error: object) -> None:
        self._status.stop()

    def begun(self, key: RunKey, past: Past) -> None:
        """Say that a run begins or goes on."""
        self._past[key] = past
        done = len(past.sessions)
        self._say(key, f"goes on after session {done}" if done else "begins")

    def session(self, key: RunKey, line: Line) -> None:
        """Say how a session went."""
        verdict = "right at once" if line["passed"] else line["reasons"][0]
        self._say(
            key,
            f"session {line['session']}: {verdict}; {line['complaints']} complaints, version {line['version']},"
            f" {line['seconds']:.0f} s",
        )

    def step(self, key: RunKey, name: str, line: Line) -> None:
        """Say what else is known."""
        self._say(key, f"{name}: {line['passed']}/{line['of']}" if "of" in line else name)

    def note(self, key: RunKey, text: str) -> None:
        """Say what is going on."""
        self._say(key, text)

    def left(self) -> str:
        """Return what is done and what is left, in words."""
        every = [*self._plan.references(), *self._plan.runs()]
        done = sum(self._past[key].ended for key in every)
        rest = estimate(self._plan, self._past)
        left = f"{done} of {len(every)} runs; about {minutes(rest.seconds)} left"
        return (
            left
            if self._plan.terms.mode == "once"
            else f"{left}, {minutes(rest.at_most_s)} if none converges"
        )

    def _say(self, key: RunKey, text: str) -> None:
        elapsed = time.monotonic() - self._began
        if self._console.is_terminal:
            self._status.update(escape(self.left()))
            self._console.print(f"{elapsed:6.0f} s  {key}  {text}", markup=False, soft_wrap=True)
        else:
            self._console.print(
                f"{elapsed:6.0f} s  {key}  {text}  ({self.left()})", markup=False, soft_wrap=True
            )


def minutes(seconds: float) -> str:
    """Return a duration in words that are no more exact than it is."""
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
