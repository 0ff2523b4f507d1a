"""Tell the platform of its engines now instead of at the clock's next turn:
after this, requests are answered."""

from __future__ import annotations

import sys
import time

WITHIN_S = 120.0


def main() -> int:
    """Reconcile until an engine may be sent requests; returns 1 with the reason where none may in time."""
    import django

    django.setup()
    from apps.engines.selectors import ready_engines
    from apps.engines.services import reconcile
    from kernel.tenancy import system_scope

    end = time.monotonic() + WITHIN_S
    while True:
        looked = reconcile()
        with system_scope("first look at the engines"):
            if ready_engines():
                return 0
        if time.monotonic() > end:
            for one in looked:
                print(f"engine {one.url}: {one.state}, {one.reason}", file=sys.stderr)
            return 1
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
