"""What no client means and any may send: every operation that takes a body refuses it in the shape of all refusals."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings

from kernel.rest.parsing import DEEPEST
from tests.apps.console.rows import Rows
from tests.rest.conftest import Api
from tests.rest.test_foreign_ids import ids_of

HALF = b'"\\ud800"'  # of a surrogate pair
PREFIX = "/api/"


def operations(rows: Rows) -> Iterator[tuple[str, str]]:
    """Yield method and path of everything that takes a body, of rows that are there."""
    described = json.loads((settings.BASE_DIR / "docs" / "openapi.json").read_text(encoding="utf-8"))
    ids = ids_of(rows)
    for path, methods in described["paths"].items():
        name = path.removeprefix(PREFIX)
        for method, operation in methods.items():
            if "requestBody" in operation:
                yield method.upper(), name.replace("{id}", str(ids.get(name.partition("/")[0], "")))


def refused(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 400, (answer.request["PATH_INFO"], answer.status_code)
    assert answer["Content-Type"] == "application/problem+json"
    problem: dict[str, Any] = json.loads(answer.content)
    return problem


@pytest.mark.parametrize(
    "body", [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000, b'{"name": ' + b"[" * 500]
)
def test_a_body_that_nests_too_deep_is_refused_everywhere(acme: Rows, owner: Api, body: bytes) -> None:
    seen = 0
    for method, path in operations(acme):
        assert refused(owner.ask(method, path, body))["code"] == "parse_error"
        seen += 1
    assert seen > 20


def test_the_bound_of_nesting_is_said_and_exact(owner: Api) -> None:
    def nested(depth: int) -> bytes:
        return b'{"name": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"

    said = refused(owner.ask("PATCH", "tenant", nested(DEEPEST + 1)))
    assert said["detail"] == (
        f"The body nests too deep: at most {DEEPEST} lists and objects within one another."
    )
    said = refused(owner.ask("PATCH", "tenant", nested(DEEPEST)))
    assert said["errors"] == [{"field": "name", "detail": "Must be a string."}]


def test_a_field_that_is_no_text_is_spelt_out_everywhere(acme: Rows, owner: Api) -> None:
    seen = 0
    for method, path in operations(acme):
        fields = [
            one["field"] for one in refused(owner.ask(method, path, b"{%s: %s}" % (HALF, HALF)))["errors"]
        ]
        assert r"\ud800" in fields, path
        seen += 1
    assert seen > 20


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (b"{%s: 1}" % HALF, r"config.\ud800"),
        (b'{"lr": %s}' % (b"9" * 400), "config.lr"),
        (b'{"batch_size": %s}' % (b"9" * 400), "config.batch_size"),
        (b'{"drift": {%s: {}}}' % HALF, r"config.drift.\ud800"),
        (b'{"drift": {"ess": {"limit": %s}}}' % (b"9" * 400), "config.drift.ess.limit"),
    ],
)
def test_settings_that_no_trainer_could_take_are_named(
    acme: Rows, owner: Api, config: bytes, field: str
) -> None:
    for method in ("PUT", "PATCH"):
        answer = owner.ask(method, f"policies/{acme.policy.pk}/config", b'{"config": %s}' % config)
        assert [one["field"] for one in refused(answer)["errors"]] == [field]


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00%2B23:59"])
@pytest.mark.parametrize("query", ["sessions?begun_after", "sessions?begun_before", "moves?moved_after"])
def test_a_time_of_no_year_is_refused(owner: Api, query: str, moment: str) -> None:
    said = refused(owner.ask("GET", f"{query}={moment}"))["errors"]
    assert said == [
        {
            "field": query.partition("?")[2],
            "detail": "This is no time (RFC 3339). Give one, such as 2026-01-31T09:00:00Z.",
        }
    ]
