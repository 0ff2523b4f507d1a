"""`manage.py simulate_schedule`: the grid in a table, as JSON and in pictures;
over a made trace and over the ledger's."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.apps.console.rows import fill

SMALL = ("--turns", "64", "--window", "0.3", "--eta", "1", "4")


def run(*options: str) -> str:
    said = StringIO()
    call_command("simulate_schedule", *options, stdout=said, stderr=StringIO())
    return said.getvalue()


def test_a_made_trace_is_the_same_for_the_same_seed_and_says_both_wall_clocks() -> None:
    once, again = (json.loads(run(*SMALL, "--seed", "3", "--json", "-")) for _ in range(2))
    assert once == again
    assert once != json.loads(run(*SMALL, "--seed", "4", "--json", "-"))
    cells: list[dict[str, Any]] = once["cells"]
    assert {cell["eta"] for cell in cells} == {1, 4}
    assert all(cell["trained"] >= 64 for cell in cells)
    windowed = [cell for cell in cells if cell["label"] == "f 0.3"]
    assert all(0 < cell["wall_s"] < cell["synchronous_s"] for cell in windowed)
    assert all(cell["staleness_mean"] <= cell["eta"] for cell in cells)


def test_the_table_and_the_pictures(tmp_path: Path) -> None:
    said = run(*SMALL, "--plot", str(tmp_path), "--json", str(tmp_path / "grid.json"))
    assert "the same turns synchronously" in said
    assert len(list(tmp_path.glob("schedule-*.png"))) == 5
    assert json.loads((tmp_path / "grid.json").read_text())["asked"]["turns"] == 64


@pytest.mark.django_db
def test_the_turns_of_a_policy_are_a_trace() -> None:
    fill("acme", turns=20)
    ledger = ("--from-ledger", "--tenant", "acme", "--window", "0.3", "--eta", "4", "--json", "-")
    for form in ((), ("--as-recorded",)):
        found = json.loads(run(*ledger, *form))
        assert found["trace"] == "acme/default"
        assert found["cells"][0]["trained"] in {8, 16}
    with pytest.raises(CommandError, match="there is no policy 'default' of a tenant 'nobody'"):
        run("--from-ledger", "--tenant", "nobody")
    fill("small", turns=2)
    with pytest.raises(CommandError, match="a trace of 2 turns has not one batch of 8"):
        run("--from-ledger", "--tenant", "small")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--turns", "0"), "--turns lies between 1 and 1e"),
        (("--window", "2"), "--window lies between 0 and 1"),
        (("--eta", "-1"), "--eta lies between 0 and 1000"),
        (("--from-ledger",), "--from-ledger needs --tenant"),
    ],
)
def test_what_cannot_be_is_refused_by_name(options: tuple[str, ...], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        run(*options)
