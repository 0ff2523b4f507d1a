"""One platform for all end-to-end tests: a real SGLang server in float32, a real trainer, a tiny model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.platform_process import PlatformProcess
from tests.tiny_model import build_tiny_model

BATCH = 2


@pytest.fixture(scope="session")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformProcess]:
    """Return the running platform.

    A step takes two samples and a large learning rate, so that one step shows.
    """
    folder = tmp_path_factory.mktemp("e2e")
    model = build_tiny_model(folder / "model")
    started = PlatformProcess(
        folder / "home",
        MODEL_PATH=str(model),
        BASE_MODEL_NAME="tiny",
        ENGINE_DTYPE="float32",
        TRAINER_DTYPE="float32",
        ATTUNE_DEVICE="cpu",
        TRAINER_DEVICE="cpu",
        TRAINING_BATCH=str(BATCH),
        TRAINING_LR="0.02",
        DRIFT_BOUNDS='{"step_k3": {"limit": 10}}',  # one step shows: it goes far
        PROBE_TOLERANCE="0.001",
        SHADOW_ENABLED="false",  # versions are made of complaints alone
    )
    try:
        started.start()
        yield started
    finally:
        started.stop()
