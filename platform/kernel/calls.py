"""Calls of SQL functions as data: what a service asks of the database, apart from who carries it there.

A service that is written as a plan runs the same way in a thread with Django's connection (`run`) and on an
event loop that sends the calls of many requests together.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from django.db import connection

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function that takes one JSON object and returns one, in a transaction of its own.

    It may be made twice where the first answer was lost, and must be harmless then. `function` is a name from
    our own code, never from outside.
    """

    function: str
    asked: bytes
    """JSON."""


Plan = Generator[Call, dict[str, Any], T]
"""Yields calls, is sent their answers, returns what came of it."""


def call(function: str, asked: dict[str, Any]) -> Call:
    """Return a call; `asked` may hold UUIDs."""
    return Call(function, orjson.dumps(asked))


def array(values: list[int] | list[float]) -> str:
    """Return numbers as Postgres writes an array: cheaper for both sides than a JSON one."""
    return "{" + orjson.dumps(values)[1:-1].decode() + "}"


def run(plan: Plan[T]) -> T:
    """Make the plan's calls one by one on Django's connection, under the scope of the caller."""
    try:
        asked = next(plan)
        while True:
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT {asked.function}(%s::jsonb)::text", [asked.asked.decode()])
                (answer,) = cursor.fetchone()
            asked = plan.send(orjson.loads(answer))
    except StopIteration as end:
        value: T = end.value
        return value
