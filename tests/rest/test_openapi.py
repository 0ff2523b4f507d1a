"""The description of /api that is checked in is the one that the views give."""

import json
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
