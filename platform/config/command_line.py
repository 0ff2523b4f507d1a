"""`manage.py`: a command that needs what does not run says so at once, and how to start it."""

import sys
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import redis
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError, connections

WITHIN_S = 5  # of a look whether something answers
_START = (
    "On one machine `make up` starts it together with everything else: leave that running, and use another terminal.",
    "Where it is a server of your own: start it, or name another one in {variable}.",
)


def run(argv: Sequence[str]) -> int:
    """Run a command and return its exit status; 1 with three lines where what it needs is not there.

    Any other error is raised as it is: it is a fault, and its traceback is wanted.
    """
    _ask_for_connections_directly()
    try:
        execute_from_command_line(list(argv))
    except (OperationalError, redis.ConnectionError):
        missing = not_running()
        if missing is None:
            raise
        sys.stderr.write(missing)
        return 1
    return 0


def not_running() -> str | None:
    """Return what does not answer and how it is started, in lines; None where all answers."""
    connections.close_all()
    try:
        connections["default"].ensure_connection()
    except OperationalError as error:
        return _said(f"Postgres does not answer at {_database()}: {_reason(error)}", "DATABASE_URL")
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=WITHIN_S) as client:
            client.ping()
    except redis.RedisError as error:
        place = urlsplit(settings.REDIS_URL)
        where = f"{place.hostname}:{place.port or 6379}" if place.hostname else place.path
        return _said(f"Valkey does not answer at {where}: {_reason(error)}", "REDIS_URL")
    return None


def _ask_for_connections_directly() -> None:
    """Open connections without a pool, which goes on trying for long:
    a command has somebody who waits for it."""
    try:
        options: dict[str, Any] = settings.DATABASES["default"].setdefault("OPTIONS", {})
    except ImproperlyConfigured:  # Django says it, or does without
        return
    options.pop("pool", None)
    options.setdefault("connect_timeout", WITHIN_S)


def _database() -> str:
    """Return where the database is, without who asks for it."""
    found = settings.DATABASES["default"]
    host, port = found.get("HOST") or "the local socket", found.get("PORT") or 5432
    return f"{host}:{port}, database {found.get('NAME')}"


def _reason(error: BaseException) -> str:
    """Return the reason of a failed connection,
    of which libpq says first what it tried and then what may help."""
    first = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return first.rpartition("failed: ")[2]


def _said(what: str, variable: str) -> str:
    how = "\n".join(_START).format(variable=variable)
    return f"{what.rstrip('.')}.\n{how}\n"
