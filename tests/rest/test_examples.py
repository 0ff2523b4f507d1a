"""Every operation of /api has an example, which is what the views answer and what the description says they do.

The examples are written anew from the views with `ATTUNE_EXAMPLES=write`, then `make openapi` puts them into the description.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.conf import settings
from jsonschema import Draft202012Validator

from apps.keys.services import create_key
from config.openapi import EXAMPLES
from tests.apps.console.rows import fill
from tests.rest.conftest import Api
from tests.rest.recording import NO_JSON, record
from tests.rest.test_openapi import DESCRIPTION

RATES = {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}


def described() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DESCRIPTION.read_text(encoding="utf-8"))
    return found


def operations(description: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield (path, method, operation)."""
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_the_examples_are_what_the_views_answer(db: None) -> None:
    del db
    rows = fill("acme", text="in plain words")
    _, secret = create_key(tenant=rows.tenant, user=rows.user, name="ci", scopes=("read", "manage"))
    recorded = record(described(), rows, Api(secret, rows.user))
    if os.environ.get("ATTUNE_EXAMPLES") == "write":
        EXAMPLES.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    checked_in = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    assert list(checked_in) == list(recorded)
    for operation, example in recorded.items():
        assert checked_in[operation] == example, operation


def test_every_operation_has_an_example_that_fits_its_schema() -> None:
    description, counted = described(), 0
    for _, _, operation in operations(description):
        name = operation["operationId"]
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "path":
                fits(description, parameter["schema"], parameter["example"])
        if (body := operation.get("requestBody")) is not None:
            media = body["content"]["application/json"]
            fits(description, media["schema"], media["example"])
            counted += 1
        if name in NO_JSON:
            continue
        (status,) = [one for one in operation["responses"] if one.startswith("2")]
        if status != "204":
            media = operation["responses"][status]["content"]["application/json"]
            fits(description, media["schema"], media["example"])
            counted += 1
    assert counted > 100
    for status, response in description["components"]["responses"].items():
        media = response["content"]["application/problem+json"]
        fits(description, media["schema"], media["example"])
        assert f"Problem{media['example']['status']}" == status


def test_no_example_holds_what_a_person_would_recognise() -> None:
    text = EXAMPLES.read_text(encoding="utf-8")
    assert str(settings.BASE_DIR) not in text
    assert "testserver" not in text


def test_limits_and_repeats_are_described() -> None:
    description = described()
    refusal = description["components"]["responses"]["Problem429"]
    assert set(refusal["headers"]) == {*RATES, "Retry-After"} == set(description["components"]["headers"])
    assert {"RateLimit-Limit", "Idempotency-Key"} <= set(description["info"]["description"].split("`"))
    repeated = 0
    for path, method, operation in operations(description):
        assert operation["responses"]["429"] == {"$ref": "#/components/responses/Problem429"}
        for status, response in operation["responses"].items():
            if status.startswith("2"):
                assert set(response["headers"]) == RATES, (path, method)
        for parameter in operation.get("parameters", ()):
            if parameter["name"] == "Idempotency-Key":
                assert parameter["description"]
                repeated += 1
    assert repeated >= 4


def fits(description: Mapping[str, Any], schema: Mapping[str, Any], example: Any) -> None:
    """Assert that an example is valid by a schema of the description."""
    whole = {**_plain(schema), "components": _plain(description["components"])}
    errors = [error.message for error in Draft202012Validator(whole).iter_errors(example)]
    assert errors == [], (schema, example)


def _plain(schema: Any) -> Any:
    """Return an OpenAPI 3.0 schema as JSON Schema: what is `nullable` there may be null here."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: _plain(one) for name, one in schema.items() if name != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") is True else plain


@pytest.mark.parametrize("example", [{"id": 7}, {"results": "none"}, None])
def test_what_does_not_fit_is_seen(example: Any) -> None:
    with pytest.raises(AssertionError):
        fits(described(), {"$ref": "#/components/schemas/PaginatedKeyList"}, example)
