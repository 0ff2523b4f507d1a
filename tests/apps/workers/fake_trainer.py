"""A trainer's child that behaves as its control file says: `python fake_trainer.py CONTROL`.

Speaks the real contract (`trainer/contracts.py`) and writes real files; only the weights are made up. The
control file is read anew for each line: {"mode": …, "seconds": …, "modes": {run id: mode}}; of a line with
several steps, "company" says how it goes as a whole where there is such an order. Modes: made, no_op,
refused, failed, die (before writing), die_after_write, hang, junk, bad_request, internal.
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from trainer.contracts import (
    Artefact,
    BaselineState,
    ErrorLine,
    ProgressEvent,
    Ready,
    SampleOutcome,
    StepReport,
    StepRequest,
    StepsRequest,
)


def main(control: Path) -> None:
    say(Ready("fake", "cpu", "float32", 1, 49152, 8192, 1).to_json())
    for line in sys.stdin:
        orders = json.loads(control.read_text(encoding="utf-8"))
        asked = json.loads(line)
        several = StepsRequest.from_json(asked) if asked["kind"] == "steps" else None
        requests = several.steps if several else (StepRequest.from_json(asked),)
        with control.with_suffix(".seen").open("a", encoding="utf-8") as seen:
            for request in requests:
                seen.write(json.dumps([sample.sample_id for sample in request.samples]) + "\n")
        with control.with_suffix(".lines").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps([request.run_id for request in requests]) + "\n")
        if several and "company" in orders:
            say(ErrorLine(orders["company"], "said so", several.run_id).to_json())
            continue
        for request in requests:
            mode = orders.get("modes", {}).get(request.run_id, orders["mode"])
            step(request, mode, orders.get("seconds", 0.0))


def step(request: StepRequest, mode: str, seconds: float) -> None:
    say(ProgressEvent(request.run_id, "learn", 1, 2, 0.1).to_json())
    time.sleep(seconds)
    if mode == "die":
        os._exit(9)
    if mode == "hang":
        time.sleep(600)
    if mode == "junk":
        print("nonsense", flush=True)
        return
    if mode in ("bad_request", "internal"):
        say(ErrorLine(mode, "said so", request.run_id).to_json())
        return
    artefact = write(request) if mode in ("made", "die_after_write") else None
    if mode == "die_after_write":
        os._exit(9)
    say(
        StepReport(
            run_id=request.run_id,
            outcome=mode,
            code="ok" if mode == "made" else "told_so",
            reason=f"the step is {mode}",
            metrics={"loss": 0.5},
            samples=tuple(SampleOutcome(sample.sample_id, ("opd",)) for sample in request.samples),
            baseline=BaselineState(mean=-1.0, count=float(len(request.samples))),
            staleness={"0": len(request.samples)},
            seconds={"total": seconds},
            artefact=artefact,
        ).to_json()
    )


def write(request: StepRequest) -> Artefact:
    directory = Path(request.out_dir)
    directory.mkdir(parents=True)
    weights = " ".join(sample.sample_id for sample in request.samples).encode()
    (directory / "adapter_model.safetensors").write_bytes(weights)
    (directory / "adapter_config.json").write_bytes(b"{}")
    sha256 = hashlib.sha256(weights + b"{}").hexdigest()
    return Artefact(str(directory), sha256, {}, len(weights), 1, request.parent_hash)


def say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
