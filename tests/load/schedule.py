"""The asynchronous loop's time to N trained turns against the same work done synchronously, on a virtual clock.

What is real: the scheduler's rules (`apps/learning/rules`, which the ledger's code calls) with the default
configuration, and the seconds of a training step, measured in this run with the real trainer. What is
simulated: the clock, the engines' slots, and the turns' durations, a seeded heavy-tailed trace from 2 s to 30
min. The synchronous arm writes and judges a batch, trains, publishes, and only then writes the next; it has
the same slots, durations and costs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from apps.learning.rules.batch import Order, window_size
from apps.learning.rules.staleness import Staleness
from apps.learning.simulation.trace import Load, heavy_tailed
from apps.learning.simulation.world import Costs, Outcome, Setting, World, synchronously

RESULTS = Path(os.environ.get("ATTUNE_HOME", "var")) / "bench"
BATCH, ETA = 8, 4  # the defaults of `TRAINING_BATCH`, `TRAINING_MAX_STALENESS`
ORDER = Order("windowed", window_size(128, 0.3))
PUBLISH_S, JUDGE_S = 5.0, 1.0


def measured_step_s(tokens: int) -> float:
    """Make one real step of a batch on a model of the embedded one's shape with random
    weights; return its seconds."""
    import torch

    from tests.load._measure import random_model
    from trainer.contracts import BaselineState, SampleInput, StepConfig, StepRequest
    from trainer.model.parallel import choose_device, join
    from trainer.model.policy import PolicyModel
    from trainer.tenants import run_steps

    def sample(number: int) -> SampleInput:
        generator = torch.Generator().manual_seed(number)
        ids = tuple(torch.randint(3, 2000, (tokens,), generator=generator).tolist())
        half = tokens // 2
        return SampleInput(
            sample_id=str(number), prompt_ids=ids[:half], output_ids=ids[half:],
            output_logprobs=(-7.0,) * (tokens - half), reward=1.0 if number % 2 else -1.0,
            hint_prompt_ids=(ids[: half // 2] + ids[:half],),
        )  # fmt: skip

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = PolicyModel(
            random_model(folder / "model", "0.1b"), ranks=join(choose_device("cpu")), dtype=torch.float32
        )
        request = StepRequest(
            run_id="bench", out_dir=str(folder / "out"), samples=tuple(sample(number) for number in range(BATCH)),
            baseline=BaselineState(mean=0.0, count=1.0), seed=1,
            config=StepConfig(max_rollout_k3=1e9, min_ess=0.0, max_step_k3=1e9),
        )  # fmt: skip
        begun = time.perf_counter()
        (report,) = run_steps(model, [request])
        if report.outcome != "made":
            raise SystemExit(report.reason)
        return time.perf_counter() - begun


def both(seed: int, *, slots: int, turns: int, costs: Costs) -> dict[str, float]:
    """Return what both arms took for one trace, and what the asynchronous one did to it."""
    load = Load("bench", heavy_tailed(3 * turns, seed=seed), slots=slots)
    outcome: Outcome = World([load], Setting(ORDER, Staleness(ETA), BATCH), costs, enough=turns).run()
    trained = outcome.trained
    if len(trained) < turns:
        raise SystemExit(f"only {len(trained)} of {turns} turns were trained")
    synchronous = synchronously(load.durations_s, slots=slots, batch=BATCH, costs=costs, enough=turns)
    durations = sorted(load.durations_s)
    longest = durations[3 * len(durations) // 4]
    return {
        "asynchronous_s": outcome.wall_s,
        "synchronous_s": synchronous,
        "ratio": outcome.wall_s / synchronous,
        "staleness": statistics.fmean(turn.staleness for turn in trained),
        "dropped": sum(turn.dropped for turn in outcome.turns) / len(outcome.turns),
        "longest_quarter": sum(turn.duration_s > longest for turn in trained) / len(trained),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=800)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--slots", type=int, nargs="+", default=[8, 16, 32], help="the second is the headline"
    )
    parser.add_argument(
        "--tokens", type=int, default=160, help="prompt and reply of a sample of the measured step"
    )
    parser.add_argument("--step-s", type=float, help="take this for a step's seconds and measure none")
    options = parser.parse_args()
    turns = options.turns // BATCH * BATCH
    step_s = options.step_s if options.step_s is not None else measured_step_s(options.tokens)
    costs = Costs(step_s, PUBLISH_S, JUDGE_S)
    rows: dict[int, dict[str, Any]] = {}
    print(
        f"schedule: {turns} trained turns, {options.seeds} seeds, step {step_s:.1f} s, batch {BATCH}, W {ORDER.window}, η {ETA}"
    )
    print(
        f"{'slots':<8}{'async h':>10}{'sync h':>10}{'ratio':>8}{'low':>8}{'high':>8}{'stale':>8}{'dropped':>9}{'longest ¼':>11}"
    )
    for slots in options.slots:
        found = [both(seed, slots=slots, turns=turns, costs=costs) for seed in range(1, options.seeds + 1)]
        median = {name: statistics.median(one[name] for one in found) for name in found[0]}
        ratios = [one["ratio"] for one in found]
        rows[slots] = {**median, "low": min(ratios), "high": max(ratios)}
        print(
            f"{slots:<8}{median['asynchronous_s'] / 3600:>10.2f}{median['synchronous_s'] / 3600:>10.2f}"
            f"{median['ratio']:>8.3f}{min(ratios):>8.3f}{max(ratios):>8.3f}{median['staleness']:>8.2f}"
            f"{median['dropped']:>9.1%}{median['longest_quarter']:>11.1%}"
        )
    headline = options.slots[min(1, len(options.slots) - 1)]
    result = {
        "name": "schedule",
        "ratio": rows[headline]["ratio"],
        "target": 1 / 3,
        "slots": headline,
        "by_slots": rows,
        "turns": turns,
        "seeds": list(range(1, options.seeds + 1)),
        "batch": BATCH,
        "window": ORDER.window,
        "eta": ETA,
        "seconds": {"step": step_s, "publish": PUBLISH_S, "judge": JUDGE_S},
        "step_measured": options.step_s is None,
        "simulated": "the clock, the slots, the turns' durations (log-normal, 2 s to 30 min, seeded), publishing, judging",
        "versions": {"python": platform.python_version()},
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / "schedule.json"
    file.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"ratio {result['ratio']:.3f}, target at most 0.333\n{file}")


if __name__ == "__main__":
    main()
