"""Start services in order, start again what dies, stop everything in time. One thread, one loop."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from embedded import logs, processes
from embedded.errors import CannotStart
from embedded.home import write_private
from embedded.progress import Progress
from embedded.service import Service, State, Unit

TICK_S = 0.1
TRIES = 5  # starts in a row before a service that never ran stops the whole start
BOUND_LOGS_EVERY_S = 20.0
LOOK_FOR_ORPHANS_EVERY_S = 2.0  # and at once when something has died
LAST_ONES_S = 4.0  # what the databases have for stopping, after all others


class Supervisor:
    """Runs a set of services until it is asked to stop.

    It owns its process: whatever lives below it and belongs to no running service is taken for a leftover and
    ended.
    """

    def __init__(
        self, services: Sequence[Service], progress: Progress, *, record: Path | None = None
    ) -> None:
        """`record`: a file that says, as JSON, which process number each service has."""
        self._units = {service.name: Unit(service) for service in services}
        self._record = record
        self._recorded: dict[str, int] = {}
        self._progress = progress
        self._stopping = False
        self._bound_logs_at = 0.0
        self._orphans_at = 0.0

    def ask_to_stop(self) -> None:
        """Make `run` return; safe in a signal handler."""
        self._stopping = True

    @property
    def stopping(self) -> bool:
        """Whether a stop was asked for."""
        return self._stopping

    def run(self, until: Callable[[], bool] = lambda: False) -> bool:
        """Supervise until `until` holds (returns True) or a stop is asked for (returns False)."""
        while not self._stopping:
            self._tick()
            if until():
                return True
            time.sleep(TICK_S)
        return False

    def all_ready(self) -> bool:
        """Return whether every service is ready or done."""
        return all(unit.state in {State.READY, State.DONE} for unit in self._units.values())

    def pid(self, name: str) -> int | None:
        """Return the process number of a service that runs."""
        process = self._units[name].process
        return None if process is None else process.pid

    def stop(self, within_s: float = 18.0) -> None:
        """Ask all to stop, the engine and the faces first, the databases last; kill what is late."""
        end = time.monotonic() + within_s
        first = [unit for unit in self._units.values() if not unit.service.last]
        last = [unit for unit in self._units.values() if unit.service.last]
        self._end(first, end - LAST_ONES_S)
        self._end(last, end)
        processes.end_all(within_s=1.0)
        for unit in self._units.values():
            if unit.process is not None:
                unit.process.poll()
            if unit.service.clean_up is not None:
                unit.service.clean_up()

    def _end(self, units: list[Unit], end: float) -> None:
        began = time.monotonic()
        for unit in units:
            if unit.process is not None:
                unit.process.send_signal(unit.service.stop_signal)
        running = [unit for unit in units if unit.process is not None]
        while running and time.monotonic() < end:
            for unit in running:
                if unit.process is not None and time.monotonic() - began > unit.service.stop_within_s:
                    processes.kill_group(unit.process.pid)
                unit.exited()
            running = [unit for unit in running if unit.process is not None]
            time.sleep(TICK_S / 2)
        for unit in running:
            if unit.process is not None:
                processes.kill_group(unit.process.pid)

    def _tick(self) -> None:
        for unit in self._units.values():
            if self._stopping:
                return
            self._look_after(unit)
        self._note_processes()
        now = time.monotonic()
        if now >= self._orphans_at:
            self._orphans_at = now + LOOK_FOR_ORPHANS_EVERY_S
            self._end_orphans()
        if now >= self._bound_logs_at:
            self._bound_logs_at = now + BOUND_LOGS_EVERY_S
            for unit in self._units.values():
                logs.bound(unit.service.log)

    def _look_after(self, unit: Unit) -> None:
        code = unit.exited()
        if code is not None:
            self._orphans_at = 0.0
            self._after_exit(unit, code)
        elif unit.stuck() and unit.process is not None:
            self._progress.say(unit.name, "does not answer; starting it again")
            processes.kill_group(unit.process.pid)
        elif (unit.state is State.WAITING and self._may_start(unit)) or unit.due():
            if unit.failures == 0 and unit.state is State.WAITING:
                self._progress.say(unit.name, unit.service.said_at_start)
            unit.start()
        elif unit.check():
            self._progress.say(
                unit.name, f"ready after {unit.seconds():.1f} s {unit.service.said_when_ready}".rstrip()
            )

    def _note_processes(self) -> None:
        running = {name: unit.process.pid for name, unit in self._units.items() if unit.process is not None}
        if self._record is not None and running != self._recorded:
            self._recorded = running
            write_private(self._record, json.dumps(running, indent=2) + "\n")

    def _may_start(self, unit: Unit) -> bool:
        return all(self._units[name].satisfied for name in unit.service.after)

    def _after_exit(self, unit: Unit, code: int) -> None:
        if unit.service.once and code == 0:
            unit.finish()
            self._progress.say(unit.name, f"done after {unit.seconds():.1f} s")
            return
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        wait = unit.delay()
        hopeless = unit.failures >= TRIES or (unit.service.once and code > 0)
        if hopeless and not unit.ever_ready:
            raise CannotStart(f"{unit.name} {how}; {unit.service.log} ends with:\n" + _quoted(unit.service))
        self._progress.say(unit.name, f"{how}; starting it again in {wait:.1f} s")

    def _end_orphans(self) -> None:
        """End what dead services left behind. A live service's own processes are in its group."""
        leaders = {unit.process.pid for unit in self._units.values() if unit.process is not None}

        def belongs(pid: int) -> bool:
            return pid in leaders or processes.group_of(pid) in leaders

        processes.end_orphans(belongs)


def _quoted(service: Service) -> str:
    return "\n".join(f"    {line}" for line in logs.tail(service.log))
