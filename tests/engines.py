"""Real SGLang servers for end-to-end tests."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from embedded import processes
from embedded.engine import Engine
from embedded.home import free_port


class Engines:
    """Starts servers on free ports and stops them all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[tuple[Path, str], tuple[Engine, subprocess.Popen[bytes]]] = {}

    def __call__(self, model: Path, *, dtype: str = "float32", within_s: float = 240.0) -> Engine:
        """Return a ready server of the model; one that was stopped or has died is started anew."""
        known = self._running.get((model, dtype))
        if known is not None and not processes.has_exited(known[1]):
            return known[0]
        engine = Engine(
            model=model, port=free_port(), api_key="engine-key", admin_key="engine-admin-key", dtype=dtype
        )
        log = self._folder / f"{engine.port}.log"
        with log.open("wb") as output:
            process = processes.spawn(
                engine.command(self._folder / f"{engine.port}.yaml"),
                env=engine.environment(os.environ),
                output=output,
            )
        self._running[model, dtype] = (engine, process)
        end = time.monotonic() + within_s
        while not engine.ready():
            if processes.has_exited(process) or time.monotonic() > end:
                raise RuntimeError(f"the engine did not start:\n{log.read_text()[-4000:]}")
            time.sleep(0.2)
        return engine

    def kill(self, engine: Engine) -> None:
        """Kill a server and its children as a crash would."""
        for known, process in self._running.values():
            if known == engine:
                processes.collect(process)

    def stop(self) -> None:
        """Stop all servers; nothing of them stays."""
        for _, process in self._running.values():
            process.terminate()
        for _, process in self._running.values():
            processes.end(process)
