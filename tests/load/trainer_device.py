"""Tokens per second, model FLOP/s utilisation and peak memory of the trainer's pass on the device it finds.

Random models: 0.1B-shaped, and 8B-shaped where there is a GPU. One pass is the gradient over sessions of
eight turns. Model FLOPs are those of a frozen base with an adapter: 2 for each weight and token forward, 2
back through the inputs (no weight's own gradient), and attention. `utilisation` is of the peak on the GPU's
data sheet, for the GPUs listed here; `of_matmul` is of what one large matrix product reaches on the same
device, so a CPU has a figure too.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import torch

from tests.load._measure import Timing, publish, random_model
from tests.load.trainer_sessions import SPEC, sessions
from trainer.contracts import BaselineState, LossConfig, StepConfig
from trainer.learn import Lot, Material, accumulate
from trainer.lora.state import Adapter
from trainer.model.parallel import choose_device, join
from trainer.model.policy import PolicyModel
from trainer.signals import read_signals, shares

PEAK_FLOPS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12}
"""Dense bfloat16, from NVIDIA's data sheets."""


def flops(model: PolicyModel, lengths: list[int]) -> float:
    """Of one pass over sequences of these lengths."""
    shape = model.shape
    attention = sum(2 * 2 * shape.heads * shape.head_dim * length**2 / 2 for length in lengths) * shape.layers
    # backward: twice the forward's attention, once its linears
    return 4.0 * shape.parameters * sum(lengths) + 3 * attention


def matmul_flops(device: torch.device, dtype: torch.dtype) -> float:
    """What a large square product reaches per second: the best of a few."""
    size = 8192 if device.type == "cuda" else 1024
    left = torch.randn(size, size, device=device).to(dtype)
    right = torch.randn(size, size, device=device).to(dtype)
    seconds = []
    for _ in range(6):
        begun = time.perf_counter()
        left @ right
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - begun)
    return 2.0 * size**3 / min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--shape", choices=("tiny", "0.1b", "8b"), action="append")
    parser.add_argument("--sessions", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = choose_device(options.device)
    ranks = join(device)
    on_gpu = device.type == "cuda"
    dtype = torch.bfloat16 if on_gpu else torch.float32
    name = torch.cuda.get_device_name(device) if on_gpu else "cpu"
    peak = next((value for gpu, value in PEAK_FLOPS.items() if gpu in name), None)
    if not on_gpu:
        print(
            "no GPU is used: one thread, float32. On one: bfloat16, 0.1B and 8B, memory as the GPU's allocator counts it"
        )
    samples = sessions(options.sessions, 2000, seed=0)
    reached = matmul_flops(device, dtype)
    config = StepConfig(loss=LossConfig(opd_weight=0.0), token_budget=16_384 if on_gpu else 4096)
    for shape in options.shape or (["0.1b", "8b"] if on_gpu else ["0.1b"]):
        with tempfile.TemporaryDirectory() as folder:
            model = PolicyModel(random_model(Path(folder), shape, dtype=dtype), ranks=ranks, dtype=dtype)
        adapter = Adapter(model, SPEC)
        adapter.initialise(0)
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(device)
        signals = read_signals(
            samples, config, BaselineState(mean=0.0, count=1.0), vocab=model.shape.vocab, max_tokens=4096
        )
        lot = Lot(Material(signals, {}, base={}, prox={}), dict(enumerate(shares(signals, config))), config)
        seconds = []
        for _ in range(options.repeats + 1):
            begun = time.perf_counter()
            accumulate(model, lot, adapter.pairs.values(), lambda _: None)
            if on_gpu:
                torch.cuda.synchronize(device)
            seconds.append(time.perf_counter() - begun)
        # the first pass chooses kernels
        timing = Timing(
            sorted(seconds[1:])[options.repeats // 2], min(seconds[1:]), max(seconds[1:]), options.repeats
        )
        lengths = [len(chain.ids) for batch in lot.batches() for chain in batch.chains]
        work = flops(model, lengths) / timing.median
        memory = (
            torch.cuda.max_memory_allocated(device)
            if on_gpu
            else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        )
        if ranks.first:
            publish(
                f"trainer_device_{shape}",
                {
                    "tokens_per_s": sum(lengths) / timing.median,
                    "tflops": work / 1e12,
                    "utilisation": work / (peak * ranks.world) if peak else None,
                    "of_matmul": work / (reached * ranks.world),
                    "peak_mib": memory >> 20,
                    "device": name,
                    "dtype": str(dtype),
                    "tokens": sum(lengths),
                },
                {"pass": timing},
            )
        del model, adapter, lot
        if on_gpu:
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
