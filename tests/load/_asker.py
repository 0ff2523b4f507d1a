"""A process that asks one database for pages when it is told to, a line of JSON each way: `python -m tests.load._asker`.

Lines are {"tenant", "face", "path"}; the answer has the milliseconds, the queries that were run and the size
of the page.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

# Django's client leaves finalizers of every request behind, which the web's process has not
SETTLE_EACH = 100


def main() -> None:
    """Answer until there are no more lines."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
    import django

    django.setup()
    from kernel import startup

    # as in the web's process
    startup.load_addresses()
    startup.load_templates()
    ask = asker()
    for number, line in enumerate(sys.stdin):
        if number % SETTLE_EACH == 0:
            startup.settle()
        asked = json.loads(line)
        print(json.dumps(ask(asked["face"], asked["path"])), flush=True)


def asker() -> Any:
    """Return what asks for a page as its owner or, of the console, as an operator: `ask(face, path)`."""
    from django.db import connection
    from django.test import Client

    from apps.accounts.models import User
    from kernel.tenancy import system_scope

    clients: dict[bool, Client] = {}
    with system_scope("who asks"):
        for console in (False, True):
            clients[console] = Client(headers={"host": "localhost"})
            clients[console].force_login(User.objects.get(is_staff=console))

    def ask(face: str, path: str) -> dict[str, Any]:
        queries = 0

        def count(execute: Any, *query: Any) -> Any:
            nonlocal queries
            queries += 1
            return execute(*query)

        with connection.execute_wrapper(count):
            began = time.perf_counter()
            answer: Any = clients[face == "console"].get(path)
            if answer.headers["Content-Type"].startswith("text/event-stream"):
                raise RuntimeError(f"{path} is a stream, which has no end to wait for: it is no page")
            body = (
                b"".join(answer) if answer.streaming else answer.content
            )  # a stream may be an asynchronous one
            took = (time.perf_counter() - began) * 1000
        if answer.status_code != 200:
            raise RuntimeError(f"{path} answered {answer.status_code}: {body[:300]!r}")
        return {"ms": took, "queries": queries, "bytes": len(body), "older": b'class="older"' in body}

    return ask


if __name__ == "__main__":
    main()
