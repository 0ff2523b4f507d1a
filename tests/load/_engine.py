"""A real engine on the CPU with the embedded model, and adapters for it."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from apps.adapters.preflight import expected_shapes
from apps.engines.client import EngineClient
from embedded import model, processes
from embedded.engine import BATCH_SLOTS, TARGET_MODULES, Engine
from embedded.home import Home, free_port
from tests.tiny_model import build_tiny_model

RANK = 16
MODELS = ("embedded", "tiny")


def model_directory(which: str, folder: Path) -> Path:
    """Return the embedded model, converted if that has not been done here yet, or one of two small layers."""
    if which == "tiny":
        return build_tiny_model(folder / "tiny")
    home = Home.from_environment()
    model.convert(home)
    return model.directory(home, "bfloat16")


def vocabulary(served: Path) -> int:
    """Return how many tokens a model has."""
    return int(json.loads((served / "config.json").read_text(encoding="utf-8"))["vocab_size"])


def some_ids(chance: random.Random, served: Path, count: int) -> list[int]:
    """Return a prompt of ordinary tokens that nobody has sent before."""
    return [chance.randrange(20, vocabulary(served)) for _ in range(count)]


def bench_directory() -> Path:
    """Return where results go."""
    directory = Home.from_environment().path / "bench"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@contextmanager
def engine(
    served: Path, folder: Path, *, slots: int = BATCH_SLOTS[0], loaded_slots: int, within_s: float = 300.0
) -> Iterator[Engine]:
    """Run one server of the model, with as many slots in a batch as `make up` gives
    it unless told otherwise."""
    server = Engine(
        model=served,
        port=free_port(),
        api_key="bench",
        admin_key="bench-admin",
        batch_slots=slots,
        loaded_slots=max(slots, loaded_slots),
    )
    log = folder / "engine.log"
    with log.open("wb") as output:
        process = processes.spawn(
            server.command(folder / "engine.yaml"), env=server.environment(os.environ), output=output
        )
    try:
        end = time.monotonic() + within_s
        while not server.ready():
            if processes.has_exited(process) or time.monotonic() > end:
                raise RuntimeError(f"the engine did not start:\n{log.read_text()[-4000:]}")
            time.sleep(0.2)
        yield server
    finally:
        process.terminate()
        processes.end(process)


def client(server: Engine) -> EngineClient:
    """Return a client of the server."""
    size = vocabulary(server.model)
    return EngineClient(server.url, server.api_key, server.admin_key, vocab_size=size)


def write_adapter(directory: Path, served: Path, *, seed: int) -> Path:
    """Write an adapter for every linear layer of the model, small enough to leave the text readable."""
    directory.mkdir(parents=True)
    chance = np.random.default_rng(seed)
    tensors = {}
    for (layer, module), (width, height) in expected_shapes(served).items():
        block = "mlp" if module in ("gate_proj", "up_proj", "down_proj") else "self_attn"
        name = f"base_model.model.model.layers.{layer}.{block}.{module}"
        tensors[f"{name}.lora_A.weight"] = (chance.standard_normal((RANK, width)) / width**0.5).astype(
            np.float32
        )
        tensors[f"{name}.lora_B.weight"] = (chance.standard_normal((height, RANK)) * 0.01).astype(np.float32)
    save_file(tensors, directory / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "r": RANK,
        "lora_alpha": 2 * RANK,
        "target_modules": list(TARGET_MODULES),
        "bias": "none",
        "base_model_name_or_path": served.name,
    }
    (directory / "adapter_config.json").write_text(json.dumps(config))
    return directory
