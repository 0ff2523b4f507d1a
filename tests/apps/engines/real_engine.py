"""A real SGLang server on a tiny model, and adapters with what PEFT computes for them."""

import json
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from apps.adapters import services
from apps.adapters.models import AdapterVersion, Policy
from apps.engines.client import EngineClient
from embedded.engine import Engine
from tests.apps.adapters.files import RANK, Arrays, directory_of, hash_of, write_adapter
from tests.tiny_model import VOCAB

PROMPTS = (
    [1, 85, 91, 294, 71, 79, 201, 2, 60, 61],
    [1, 70, 71, 72, 0, VOCAB - 1, 75, 76, VOCAB - 1, 78, 79, 80],
)


def client_of(engine: Engine) -> EngineClient:
    return EngineClient(engine.url, engine.api_key, engine.admin_key, timeout_s=60)


def smaller(arrays: Arrays) -> None:
    for name in arrays:
        arrays[name] = arrays[name] * np.float32(0.1)


def reference(model: Path, adapter: Path | None) -> list[list[float]]:
    """Score PROMPTS with transformers and PEFT."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    network: Any = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    if adapter is not None:
        network = PeftModel.from_pretrained(network, str(adapter))
    scored = []
    for ids in PROMPTS:
        with torch.no_grad():
            logits = network(torch.tensor([ids])).logits.log_softmax(-1)
        scored.append(logits[0, :-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist())
    return scored


def write_real_adapter(directory: Path, model: Path, seed: int) -> str:
    """Write an adapter with the values that PEFT computes for it as its probe."""
    write_adapter(directory, model, seed=seed, change=smaller)
    with_adapter, base = reference(model, directory), reference(model, None)
    rows = [
        {"ids": ids, "logprobs": a, "base_logprobs": b}
        for ids, a, b in zip(PROMPTS, with_adapter, base, strict=True)
    ]
    (directory / "manifest.json").write_text(json.dumps({"probe": rows}))
    return hash_of(directory)


def version_of(
    policy: Policy, store: Path, model: Path, parent: AdapterVersion | None, seed: int
) -> AdapterVersion:
    directory = directory_of(store, policy, parent.number + 1 if parent else 1)
    sha256 = write_real_adapter(directory, model, seed)
    return services.create_version(
        policy=policy,
        parent=parent,
        run_id=uuid.uuid4(),
        artefact_dir=directory,
        sha256=sha256,
        rank=RANK,
        alpha=8,
        metrics={},
    )
