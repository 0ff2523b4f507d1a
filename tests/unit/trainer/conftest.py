"""One tiny model in memory for all tests of the trainer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

from tests.tiny_model import build_tiny_model
from trainer.contracts import LossConfig, SampleInput, StepConfig, StepRequest
from trainer.model.parallel import Ranks, choose_device, join
from trainer.model.policy import PolicyModel
from trainer.scoring import Row, logprobs

PROMPT = (1, 85, 91, 294, 71, 79, 201)
HINTED = (1, 85, 91, 294, 71, 79, 201, 59, 266, 259)


@pytest.fixture(scope="session")
def ranks() -> Ranks:
    torch.set_num_threads(1)
    return join(choose_device("cpu"))


@pytest.fixture(scope="session")
def tiny_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="session")
def model(tiny_directory: Path, ranks: Ranks) -> PolicyModel:
    return PolicyModel(tiny_directory, ranks=ranks, dtype=torch.float32)


@pytest.fixture
def sample(model: PolicyModel) -> Callable[..., SampleInput]:
    """A reply with the log-probabilities of the bare base,
    as an engine with the same arithmetic would give."""

    def make(seed: int = 0, *, length: int = 6, temperature: float = 0.7, **fields: object) -> SampleInput:
        generator = torch.Generator().manual_seed(seed)
        output = tuple(torch.randint(3, 300, (length,), generator=generator).tolist())
        row = Row(0, PROMPT + output, length)
        with model.bare():
            found = logprobs(model, [row], {0: temperature or 1.0}, budget=4096, chunk=64)[0]
        known: dict[str, object] = {
            "sample_id": f"s{seed}",
            "prompt_ids": PROMPT,
            "output_ids": output,
            "output_logprobs": tuple(found.tolist()),
            "temperature": temperature,
        }
        return SampleInput(**{**known, **fields})  # type: ignore[arg-type]

    return make


@pytest.fixture
def request_for(tmp_path: Path) -> Callable[..., StepRequest]:
    """A request with small defaults; loss fields as `loss_*`, config fields by their names."""

    def make(name: str, samples: list[SampleInput], **fields: object) -> StepRequest:
        loss = {key.removeprefix("loss_"): fields.pop(key) for key in list(fields) if key.startswith("loss_")}
        own = {key: fields.pop(key) for key in list(fields) if key in StepConfig.__dataclass_fields__}
        config = StepConfig(loss=LossConfig(**loss), **{"lr": 2e-3, **own})  # type: ignore[arg-type]
        return StepRequest(
            run_id=name,
            out_dir=str(tmp_path / name),
            samples=tuple(samples),
            config=config,
            **fields,  # type: ignore[arg-type]
        )

    return make
