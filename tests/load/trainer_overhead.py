"""What a 64-turn step spends beside forward and backward: paging, optimiser, export, hash, fsync.

Whole steps of sessions of eight turns from a parent on the disk, as workers ask for them. Counted as
computing: the pass that makes the gradient, and the look at the policy after it. All else is overhead, the
probes' own passes included.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import torch

from tests.load._measure import Timing, publish, random_model
from tests.load.trainer_sessions import TURNS, sessions
from trainer.contracts import BaselineState, InitRequest, LossConfig, StepConfig, StepReport, StepRequest
from trainer.learn import Lot, Tally, accumulate
from trainer.model.parallel import choose_device, join
from trainer.model.policy import PolicyModel
from trainer.recorder import Recorder
from trainer.scoring import Tick
from trainer.step import close_step, open_step, run_init


def step(model: PolicyModel, request: StepRequest) -> tuple[float, float, dict[str, float]]:
    """Seconds in all and seconds of computing of one step, and the seconds of its phases."""
    begun = time.perf_counter()
    opened = open_step(model, request, Recorder(request, lambda _: None))
    if isinstance(opened, StepReport):
        raise SystemExit(opened.reason)
    computing = 0.0

    def gradient(lot: Lot, tick: Tick) -> Tally:
        nonlocal computing
        started = time.perf_counter()
        tally = accumulate(model, lot, opened.adapter.pairs.values(), tick)
        computing += time.perf_counter() - started
        return tally

    report = close_step(model, opened, gradient)
    if report.outcome != "made":
        raise SystemExit(report.reason)
    return time.perf_counter() - begun, computing + report.seconds["check"], dict(report.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=("tiny", "0.1b"), default="0.1b")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    samples = tuple(sessions(64 // TURNS, 2000, seed=0))
    probes = tuple(sample.prompt_ids for sample in samples[:3])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = PolicyModel(
            random_model(folder / "model", options.shape),
            ranks=join(choose_device("cpu")),
            dtype=getattr(torch, options.dtype),
        )
        parent = run_init(
            model, InitRequest(run_id="parent", out_dir=str(folder / "parent"), probe_ids=probes)
        )
        if parent.artefact is None:
            raise SystemExit(parent.reason)
        config = StepConfig(
            loss=LossConfig(opd_weight=0.0),
            token_budget=1024,
            max_rollout_k3=1e9,
            min_ess=0.0,
            max_step_k3=1e9,
        )
        totals, shares, phases = [], [], {}
        for number in range(options.repeats):
            out = folder / f"step-{number}"
            total, computing, phases = step(
                model,
                StepRequest(
                    run_id=str(number), out_dir=str(out), samples=samples, config=config, probe_ids=probes,
                    parent_dir=parent.artefact.dir, baseline=BaselineState(mean=0.0, count=1.0),
                ),
            )  # fmt: skip
            shutil.rmtree(out)
            totals.append(total)
            shares.append(1 - computing / total)
    publish(
        "trainer_overhead",
        {
            "ratio": statistics.median(shares),
            **{f"last_{phase}_s": seconds for phase, seconds in phases.items()},
            "turns": len(samples),
            "shape": options.shape,
            "dtype": options.dtype,
        },
        {"step": Timing(statistics.median(totals), min(totals), max(totals), len(totals))},
    )


if __name__ == "__main__":
    main()
