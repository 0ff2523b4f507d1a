"""Small batches of many tenants in one pass against one at a time; memory of eight tenants against one.

The gradient of every tenant's batch and its AdamW step; the gradients of both arms are compared. `--memory`
measures the peak resident memory of whole steps, in processes of their own: one tenant against eight.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tests.load._measure import publish, random_model, side_by_side
from trainer.contracts import (
    TOGETHER_AT_MOST,
    BaselineState,
    LoraSpec,
    LossConfig,
    SampleInput,
    StepConfig,
    StepReport,
    StepRequest,
)
from trainer.learn import Lot, Material, accumulate
from trainer.lora.state import Adapter
from trainer.model.parallel import choose_device, join
from trainer.model.policy import PolicyModel
from trainer.optim import clip_gradient
from trainer.signals import read_signals, shares
from trainer.step import run_step
from trainer.tenants import Member, accumulate_together, run_steps

SPEC = LoraSpec()
BASELINE = BaselineState(mean=0.0, count=1.0)


def batch(tenant: int, tokens: int) -> SampleInput:
    """Half prompt, half reply."""
    generator = torch.Generator().manual_seed(tenant)
    ids = tuple(torch.randint(3, 2000, (tokens,), generator=generator).tolist())
    reply = tokens // 2
    return SampleInput(
        sample_id=str(tenant), prompt_ids=ids[:reply], output_ids=ids[reply:],
        output_logprobs=(-7.0,) * (tokens - reply), reward=1.0 if tenant % 2 else -1.0,
    )  # fmt: skip


class Tenants:
    """Policies with adapters and batches of their own."""

    def __init__(self, model: PolicyModel, count: int, tokens: int) -> None:
        self.model = model
        self.adapter = Adapter(model, SPEC)
        self.members: list[Member] = []
        config = StepConfig(loss=LossConfig(opd_weight=0.0))
        for tenant in range(count):
            self.adapter.initialise(tenant)
            with torch.no_grad():
                for pair in self.adapter.pairs.values():
                    pair.b.normal_(0, 0.02, generator=torch.Generator().manual_seed(tenant))
            signals = read_signals(
                [batch(tenant, tokens)], config, BASELINE, vocab=model.shape.vocab, max_tokens=4096
            )
            lot = Lot(
                Material(signals, {}, base={}, prox={}), dict(enumerate(shares(signals, config))), config
            )
            self.members.append(Member(lot, self.adapter.take_off()))

    def alone(self) -> None:
        """Adapters are copied onto the model one after the other."""
        for member in self.members:
            with torch.no_grad():
                for name, pair in self.adapter.pairs.items():
                    pair.a.copy_(member.values[name].a)
                    pair.b.copy_(member.values[name].b)
                    pair.a.grad = pair.b.grad = None
            accumulate(self.model, member.lot, (), lambda _: None)
            self._update()

    def together(self, at_once: int = TOGETHER_AT_MOST) -> None:
        """As `trainer.tenants` does it: a pass for so many tenants, then each one's optimiser."""
        for start in range(0, len(self.members), at_once):
            chosen = self.members[start : start + at_once]
            accumulate_together(self.model, chosen, lambda _: None)
            for member in chosen:
                with torch.no_grad():
                    for name, pair in self.adapter.pairs.items():
                        pair.a.copy_(member.values[name].a)
                        pair.b.copy_(member.values[name].b)
                self.adapter.take_gradient(member.values)
                self._update()

    def _update(self) -> None:
        self.norms.append(clip_gradient(self.adapter.pairs, self.model.ranks, 1.0))
        torch.optim.AdamW(self.adapter.parameters, lr=1e-9, fused=True).step()

    norms: list[float] = []


def peak_memory(directory: Path, tenants: int, tokens: int, folder: Path) -> int:
    """Peak resident bytes of a process that makes one step of each of so many tenants."""
    command = [
        sys.executable, "-W", "ignore", "-m", "tests.load.trainer_tenants", "--measure", str(directory), str(folder),
        "--tenants", str(tenants), "--tokens", str(tokens),
    ]  # fmt: skip
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(json.loads(found.stdout.splitlines()[-1])["peak"])


def requests_for(tenants: int, tokens: int, folder: Path) -> list[StepRequest]:
    """A whole step of each of so many tenants, from fresh adapters."""
    config = StepConfig(max_rollout_k3=1e9, min_ess=0.0, max_step_k3=1e9)
    return [
        StepRequest(
            run_id=str(tenant), out_dir=str(folder / f"{tenants}-{tenant}"), samples=(batch(tenant, tokens),),
            baseline=BASELINE, config=config, seed=tenant,
        )
        for tenant in range(tenants)
    ]  # fmt: skip


def made(reports: Sequence[StepReport]) -> None:
    if {report.outcome for report in reports} != {"made"}:
        raise SystemExit(str([report.reason for report in reports]))


def measure(directory: Path, folder: Path, tenants: int, tokens: int) -> None:
    """The process that `peak_memory` starts."""
    model = PolicyModel(directory, ranks=join(choose_device("cpu")), dtype=torch.float32)
    made(run_steps(model, requests_for(tenants, tokens, folder)))
    print(json.dumps({"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def whole_steps(model: PolicyModel, tenants: int, tokens: int, folder: Path) -> dict[str, float]:
    """Seconds a tenant, by the clock on the wall and by the processor, of whole steps:
    paging, export, hash and fsync too."""
    found = {}
    for name in ("alone", "together"):
        place = folder / name
        requests = requests_for(tenants, tokens, place)
        wall, busy = time.perf_counter(), time.process_time()
        made(
            run_steps(model, requests)
            if name == "together"
            else [run_step(model, request) for request in requests]
        )
        found[f"whole_{name}_wall_s"] = (time.perf_counter() - wall) / tenants
        found[f"whole_{name}_cpu_s"] = (time.process_time() - busy) / tenants
        shutil.rmtree(place)
    found["whole_ratio_cpu"] = found["whole_together_cpu_s"] / found["whole_alone_cpu_s"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=("tiny", "0.1b"), default="0.1b")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--tenants", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--measure", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.measure:
        measure(*options.measure, options.tenants, options.tokens)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        directory = random_model(folder / "model", options.shape)
        memory: dict[str, Any] = {}
        if not options.no_memory:
            one, eight = (peak_memory(directory, count, options.tokens, folder) for count in (1, 8))
            memory = {"memory_ratio": eight / one, "mib_one": one >> 20, "mib_eight": eight >> 20}
        model = PolicyModel(directory, ranks=join(choose_device("cpu")), dtype=getattr(torch, options.dtype))
        arms = Tenants(model, options.tenants, options.tokens)
        timings = side_by_side(
            {"one at a time": arms.alone, "together": arms.together}, repeats=options.repeats
        )
        whole = whole_steps(model, min(options.tenants, 16), options.tokens, folder / "whole")
    first, second = arms.norms[: options.tenants], arms.norms[options.tenants : 2 * options.tenants]
    publish(
        "trainer_tenants",
        {
            "ratio": timings["together"].median / timings["one at a time"].median,
            "norm_gap": max(abs(a - b) for a, b in zip(first, second, strict=True)),
            "norm_max": max(first),
            **memory,
            **whole,
            "tenants": options.tenants,
            "tokens": options.tokens,
            "at_once": TOGETHER_AT_MOST,
            "shape": options.shape,
            "dtype": options.dtype,
        },
        timings,
    )


if __name__ == "__main__":
    main()
