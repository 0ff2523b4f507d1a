"""What tests of whole steps have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trainer.contracts import BaselineState, SampleInput, StepReport, StepRequest

from .conftest import HINTED

Make = Callable[..., SampleInput]
For = Callable[..., StepRequest]
ZERO = BaselineState(mean=0.0, count=1.0)
HINT = (HINTED,)


def made(report: StepReport) -> Path:
    assert report.outcome == "made", report.reason
    assert report.artefact is not None
    return Path(report.artefact.dir)


def nothing_left(request: StepRequest) -> bool:
    return not list(Path(request.out_dir).parent.iterdir())
