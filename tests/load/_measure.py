"""What every benchmark of the trainer shares: a model to measure on, fair timing, and a result on the disk."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(os.environ.get("ATTUNE_HOME", "var")) / "bench"
PACKAGES = ("torch", "megatron-core", "peft", "transformers", "trl")

SHAPES: dict[str, dict[str, int]] = {
    "tiny": {
        "vocab_size": 2048, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2,
    },
    "0.1b": {
        "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
        "num_attention_heads": 9, "num_key_value_heads": 3,
    },
    "8b": {
        "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8,
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of several repetitions of one arm."""

    median: float
    low: float
    high: float
    repeats: int


def random_model(directory: Path, shape: str, *, seed: int = 0, dtype: torch.dtype | None = None) -> Path:
    """Writes a Llama of this shape with random weights (float32 by default), and returns its directory."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(**SHAPES[shape], max_position_embeddings=4096, tie_word_embeddings=True)
    before = torch.get_default_dtype()
    torch.set_default_dtype(
        dtype or torch.float32
    )  # made small, not made small afterwards: eight billion weights
    try:
        LlamaForCausalLM(config).save_pretrained(directory)
    finally:
        torch.set_default_dtype(before)
    return directory


def side_by_side(arms: Mapping[str, Callable[[], object]], *, repeats: int) -> dict[str, Timing]:
    """Times the arms in turn, round after round, in seconds of this process's processor time.

    Every arm computes in one thread and waits for nothing, so on a quiet machine that is the time by the
    clock on the wall, and on a busy one it leaves out what others do. There is nothing to warm up: no
    compiler, no cache.
    """
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(repeats):
        for name, arm in arms.items():
            begun = time.process_time()
            arm()
            seconds[name].append(time.process_time() - begun)
    return {
        name: Timing(statistics.median(values), min(values), max(values), len(values))
        for name, values in seconds.items()
    }


def publish(name: str, found: Mapping[str, Any], timings: Mapping[str, Timing]) -> Path:
    """Prints a table and writes `var/bench/NAME.json` with versions,
    machine and figures; returns the file."""
    print(f"{name}\n{'arm':<28}{'median s':>10}{'low':>10}{'high':>10}{'repeats':>9}")
    for arm, timing in timings.items():
        print(f"{arm:<28}{timing.median:>10.3f}{timing.low:>10.3f}{timing.high:>10.3f}{timing.repeats:>9}")
    for key, value in found.items():
        print(f"{key:<28}{value:>10.4g}" if isinstance(value, float) else f"{key:<28}{value}")
    result = {
        "name": name,
        **found,
        "seconds": {arm: asdict(timing) for arm, timing in timings.items()},
        "versions": _versions(),
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
        },
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / f"{name}.json"
    file.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(file)
    return file


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
