"""`docs/cases.md` says which test shows what: every row names some, and all that it names are there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADINGS = ["Gateway", "Engines and adapters", "Learning"]
GATEWAY_CASES = 23
ENGINE_CASES = 30
_TEST = re.compile(r"`(tests/[^`]+\.py)::(test_\w+)`")


def read_tables() -> dict[str, list[list[str]]]:
    """Return the rows' cells under each heading; a `|` within a cell is written as `\\|`."""
    tables: dict[str, list[list[str]]] = {}
    for line in (ROOT / "docs" / "cases.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            tables[line.removeprefix("## ")] = []
        elif line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if cells[0] != "given" and set(line) - set("|-: "):
                tables[list(tables)[-1]].append(cells)
    return tables


def functions_of(path: Path) -> set[str]:
    if not path.is_file():
        return set()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, functions)
    }


def test_the_three_tables_are_there() -> None:
    assert list(read_tables()) == HEADINGS


def test_every_row_names_tests() -> None:
    rows = [row for table in read_tables().values() for row in table]

    assert [row for row in rows if len(row) != 3 or not all(row) or not _TEST.search(row[-1])] == []


def test_every_named_test_is_there() -> None:
    named = {
        (path, name)
        for table in read_tables().values()
        for row in table
        for path, name in _TEST.findall(row[-1])
    }

    known = {path: functions_of(ROOT / path) for path, _ in named}
    assert [f"{path}::{name}" for path, name in sorted(named) if name not in known[path]] == []


def test_no_case_of_the_gateway_is_missing() -> None:
    assert len(read_tables()["Gateway"]) == GATEWAY_CASES


def test_no_case_of_the_engines_is_missing() -> None:
    assert len(read_tables()["Engines and adapters"]) == ENGINE_CASES
