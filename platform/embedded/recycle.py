"""Restart the embedded engine: `ENGINE_RESTART_COMMAND` of `make up`.

The supervisor starts again what was ended here.
"""

from __future__ import annotations

import json
import sys

from embedded import processes
from embedded.home import Home


def main() -> int:
    """End the engine's processes; returns 1 where none runs under the supervisor of this home."""
    running = Home.from_environment().processes
    if not running.exists() or "engine" not in (pids := json.loads(running.read_text(encoding="utf-8"))):
        print("no embedded engine runs here", file=sys.stderr)
        return 1
    # it is stuck: asked politely, it would wait for what it is stuck in
    processes.kill_group(pids["engine"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
