"""What tests of the gateway ask, and what they look at."""

import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.tenants import Somebody

HI = {"model": "default", "messages": [{"role": "user", "content": "hi"}]}


def refused(response: httpx.Response, status: int, code: str, param: str | None) -> dict[str, Any]:
    """Check the shape of an error and return it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["code"], error["param"]) == (code, param)
    assert error["message"]
    return error


def wait_for(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


def states(somebody: Somebody) -> list[str]:
    return [turn.state for turn in somebody.turns()]
