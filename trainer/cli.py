"""The trainer by itself: train on a file of samples, look without stepping, export.

A file of samples has one `SampleInput` as JSON a line, in the order in which they are learned from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.artefact import CONFIG, MANIFEST, WEIGHTS, export_plain, read_parent
from trainer.codec import Contract, ContractError
from trainer.contracts import BaselineState, SampleInput, StepConfig, StepReport, StepRequest
from trainer.errors import StepFailedError
from trainer.model.policy import PolicyModel
from trainer.step import run_step

Say = Callable[[Contract], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """A training run over a file."""

    samples: tuple[SampleInput, ...]
    config: StepConfig
    out: Path
    batch: int
    parent: Path | None = None
    seed: int = 0
    dry_run: bool = False


def read_samples(file: Path) -> tuple[SampleInput, ...]:
    """Raises `ContractError` that names the line which is no sample."""
    samples = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            samples.append(SampleInput.from_json(json.loads(line)))
        except ValueError as error:
            raise ContractError(f"{file}:{number}: {error}") from error
    return tuple(samples)


def read_config(file: Path | None, changes: Sequence[str]) -> StepConfig:
    """The configuration of a file, with changes like `lr=2e-4` or `loss.opd_kind=full_kl`.

    Raises `ContractError` for what is unknown or out of bounds.
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8")) if file else {}
    except ValueError as error:
        raise ContractError(f"{file}: {error}") from error
    for change in changes:
        name, found, value = change.partition("=")
        if not found:
            raise ContractError(f"{change!r}: expected name=value")
        *parts, last = name.split(".")
        place = data
        for part in parts:
            place = place.setdefault(part, {})
        place[last] = _value(value)
    return StepConfig.from_json(data)


def train(model: PolicyModel, plan: Plan, say: Say) -> int:
    """One step for each batch, each from the version before it;
    the number of batches that were refused or failed.

    Versions are `out/step-<batch>`. Started again after a crash it goes on from the last whole version, with
    its optimiser and baseline, and makes the same versions as a run that was never stopped. A dry run makes
    none: every batch is looked at from where the training stands.
    """
    bad = 0
    start, parent, baseline = _resume(plan)
    for index, samples in _batches(plan, start):
        report = run_step(
            model,
            StepRequest(
                run_id=f"step-{index:06d}",
                out_dir=str(plan.out / f"step-{index:06d}"),
                samples=samples,
                config=plan.config,
                parent_dir=str(parent) if parent else None,
                baseline=baseline,
                seed=plan.seed + index,
                dry_run=plan.dry_run,
            ),
        )
        say(report)
        bad += report.outcome in ("refused", "failed")
        baseline = report.baseline
        if report.artefact is not None:
            parent = Path(report.artefact.dir)
    return bad


def evaluate(model: PolicyModel, plan: Plan, say: Say) -> StepReport:
    """What an adapter makes of the samples: losses, drift and gradient norm,
    and each sample's own; no step."""
    request = StepRequest(
        run_id="evaluate",
        out_dir=str(plan.out),
        samples=plan.samples,
        config=plan.config,
        parent_dir=str(plan.parent) if plan.parent else None,
        seed=plan.seed,
        dry_run=True,
    )
    report = run_step(model, request)
    say(report)
    return report


def export(adapter: Path, out: Path) -> dict[str, Any]:
    """Copies a version's weights and configuration, checked against its manifest, as a plain PEFT directory.

    Raises `StepFailedError` where the version is not whole or `out` exists.
    """
    parent = read_parent(adapter, None)
    export_plain(adapter, out)
    return {"dir": str(out), "hash": parent.hash, "step": parent.step, "files": [CONFIG, WEIGHTS]}


def _batches(plan: Plan, start: int) -> Iterator[tuple[int, tuple[SampleInput, ...]]]:
    for index in range(start, -(-len(plan.samples) // plan.batch)):
        yield index, plan.samples[index * plan.batch : (index + 1) * plan.batch]


def _resume(plan: Plan) -> tuple[int, Path | None, BaselineState]:
    """The batch to go on with, and the version and baseline to start it from."""
    for directory in sorted(plan.out.glob("step-*"), reverse=True):
        try:
            read_parent(directory, None)
            manifest = json.loads((directory / MANIFEST).read_bytes())
        except (StepFailedError, OSError) as error:
            raise StepFailedError("bad_parent", f"{directory}: not a whole version: {error}") from error
        return (
            int(directory.name.removeprefix("step-")) + 1,
            directory,
            BaselineState.from_json(manifest["baseline"]),
        )
    return 0, plan.parent, BaselineState()


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
