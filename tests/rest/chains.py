"""Which sequences schemathesis made: from its report (NDJSON), where a request names the answer that its id came from."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """A request that was answered."""

    operation: str
    """`PATCH /api/views/{id}`."""
    of: str
    """The id in its address; "" where there is none."""
    status: int
    chain: tuple[str, ...]
    """The operations from the first to this one, each with what the one before answered; () where one of them was refused."""


def scenarios(report: Path) -> Iterator[list[Step]]:
    """Yield the steps of each scenario, in the order in which they were sent."""
    for line in report.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if "ScenarioFinished" in event:
            recorded = event["ScenarioFinished"]["recorder"]
            yield list(_steps(recorded.get("cases", {}), recorded.get("interactions", {})))


def _steps(cases: Mapping[str, Any], interactions: Mapping[str, Any]) -> Iterator[Step]:
    made: dict[str, Step] = {}
    for name, case in cases.items():
        answer = interactions.get(name, {}).get("response")
        if answer is None:
            continue
        asked, status = case["value"], answer["status_code"]
        operation = f"{asked['method']} {asked['path']}"
        before: tuple[str, ...] | None = ()
        if "parent_id" in case:
            parent = made.get(case["parent_id"])
            # probes without a key, and ids that were drawn by chance, go on from nothing
            before = (parent.chain or None) if parent and case.get("is_transition_applied") else None
        chain = (*before, operation) if before is not None and 200 <= status < 300 else ()
        of = str(asked.get("path_parameters", {}).get("id", ""))
        made[name] = Step(operation, of, status, chain)
        yield made[name]


def read_after_delete(steps: list[Step]) -> Iterator[tuple[str, int]]:
    """Yield (operation, status) of every GET of something that was deleted before, in one scenario."""
    gone: set[str] = set()
    for step in steps:
        if step.operation.startswith("DELETE ") and step.status == 204:
            gone.add(step.of)
        elif step.operation.startswith("GET ") and step.of in gone:
            yield step.operation, step.status
