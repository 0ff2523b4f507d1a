"""Adapters on the disk, as the trainer writes them, whole or with one fault."""

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from apps.adapters.models import Policy
from apps.adapters.preflight import expected_shapes
from tests.fake_engine import FakeEngine

BASE = {
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "num_hidden_layers": 2,
    "vocab_size": 64,
    "max_position_embeddings": 256,
}
RANK = 4
IDS = [1, 5, 9, 12, 33, 7]
CHANGE = 0.5  # nats that every adapter of these tests adds to every token

Arrays = dict[str, npt.NDArray[Any]]


def base_logprob(token: int) -> float:
    """What trainer and engine both say of the bare base."""
    return -1.0 - (token % 7) / 16


def answers(engine: FakeEngine, *, applied: float = 1.0) -> None:
    """Let an engine apply so much of whatever adapter it is asked for."""
    engine.score = lambda adapter, token: base_logprob(token) + (applied * CHANGE if adapter else 0.0)


def write_base(directory: Path) -> Path:
    """Write the base's configuration."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(BASE))
    return directory


def tensors(base: Path, seed: int = 0) -> Arrays:
    """Return a whole adapter's matrices."""
    chance = np.random.default_rng(seed)
    found: Arrays = {}
    for (layer, module), (width, height) in expected_shapes(base).items():
        block = "mlp" if module in ("gate_proj", "up_proj", "down_proj") else "self_attn"
        name = f"base_model.model.model.layers.{layer}.{block}.{module}"
        found[f"{name}.lora_A.weight"] = chance.standard_normal((RANK, width)).astype(np.float32)
        found[f"{name}.lora_B.weight"] = chance.standard_normal((height, RANK)).astype(np.float32)
    return found


def configuration(**changed: Any) -> dict[str, Any]:
    """Return an adapter_config.json's content."""
    modules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    return {
        "peft_type": "LORA",
        "r": RANK,
        "lora_alpha": 8,
        "target_modules": modules,
        "bias": "none",
        "use_rslora": False,
        "use_dora": False,
        "rank_pattern": {},
        "alpha_pattern": {},
        "modules_to_save": None,
        "base_model_name_or_path": "tiny",
        **changed,
    }


def probe() -> list[dict[str, Any]]:
    """Return what the trainer would have measured."""
    base = [base_logprob(token) for token in IDS[1:]]
    return [{"ids": IDS, "logprobs": [value + CHANGE for value in base], "base_logprobs": base}]


def write_adapter(
    directory: Path,
    base: Path,
    *,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
    change: Callable[[Arrays], None] | None = None,
    manifest: Mapping[str, Any] | None = None,
) -> str:
    """Write an artefact and return its version hash. `change` spoils the matrices first."""
    directory.mkdir(parents=True)
    arrays = tensors(base, seed)
    if change is not None:
        change(arrays)
    save_file(arrays, directory / "adapter_model.safetensors")
    (directory / "adapter_config.json").write_text(json.dumps(configuration() if config is None else config))
    (directory / "manifest.json").write_text(json.dumps({"probe": probe()} if manifest is None else manifest))
    return hash_of(directory)


def hash_of(directory: Path) -> str:
    """Return the version hash, computed apart from the code under test."""
    weights = (directory / "adapter_model.safetensors").read_bytes()
    return hashlib.sha256(weights + (directory / "adapter_config.json").read_bytes()).hexdigest()


def directory_of(store: Path, policy: Policy, number: int) -> Path:
    """Return a fresh directory as the trainer's worker names them."""
    return store / str(policy.tenant_id) / str(policy.pk) / f"{number}-{uuid.uuid4().hex[-8:]}-1"
