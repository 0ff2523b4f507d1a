"""The description of /api that is checked in is the one that the views give."""

import json
import uuid
from pathlib import Path

from django.core.management import call_command

ROOT = Path(__file__).resolve().parents[2]
DESCRIPTION = ROOT / "docs" / "openapi.json"


def test_the_description_is_up_to_date(tmp_path: Path) -> None:
    """Write it anew with `make openapi`."""
    fresh = tmp_path / "openapi.json"
    call_command("spectacular", format="openapi-json", validate=True, fail_on_warn=True, file=str(fresh))
    assert json.loads(DESCRIPTION.read_text(encoding="utf-8")) == json.loads(
        fresh.read_text(encoding="utf-8")
    )


def test_every_operation_is_described_and_says_how_it_refuses() -> None:
    described = json.loads(DESCRIPTION.read_text(encoding="utf-8"))
    operations = [
        (path, method, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    assert len(operations) >= 28
    for path, method, operation in operations:
        assert operation["description"].strip(), (method, path)
        assert {"400", "401", "403", "404", "429"} <= set(operation["responses"]), (method, path)


def test_links_lead_to_operations_by_what_stands_in_the_answer() -> None:
    """The examples are answers of the views: a pointer finds an id in them, or null where a thing may name none."""
    described = json.loads(DESCRIPTION.read_text(encoding="utf-8"))
    operations = {
        one["operationId"]: one for methods in described["paths"].values() for one in methods.values()
    }
    leads: dict[str, dict[str, str]] = {}
    for name, operation in operations.items():
        for status, response in operation["responses"].items():
            for link in response.get("links", {}).values():
                assert status.startswith("2"), name
                ((parameter, expression),) = link["parameters"].items()
                taken = [one["name"] for one in operations[link["operationId"]]["parameters"]]
                assert parameter in taken, (name, link)
                found = response["content"]["application/json"]["example"]
                for part in expression.removeprefix("$response.body#/").split("/"):
                    found = found[int(part) if part.isdigit() else part]
                assert found is None or uuid.UUID(found), (name, link)
                leads.setdefault(name, {})[link["operationId"]] = expression.partition("#")[2]
    assert leads["views_create"] == dict.fromkeys(
        ("views_retrieve", "views_partial_update", "views_destroy"), "/id"
    )
    assert leads["views_list"] == {"views_retrieve": "/results/0/id"}
    assert leads["keys_create"]["keys_rotate_create"] == "/key/id"
    assert leads["sessions_retrieve"] == {"turns_list": "/id", "policies_retrieve": "/policy"}
    assert "views_destroy" not in leads
    assert {f"{kind}_list" for kind in ("policies", "runs", "versions", "turns", "memory")} <= leads.keys()
