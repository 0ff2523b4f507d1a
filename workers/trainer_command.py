"""How the trainer's child is started: its command line, and an environment without secrets."""

import os
import re
import sys
from collections.abc import Mapping

from django.conf import settings

_SECRET = re.compile(r"SECRET|PASSWORD|TOKEN|_KEYS?$|_URLS?$|_PROXY$", re.IGNORECASE)


def trainer_command() -> list[str]:
    """Return the child's command line, under torchrun where there are several ranks."""
    serve = [
        sys.executable, "-m", "trainer", "serve",
        "--model", str(settings.TRAINER_MODEL_PATH),
        "--device", settings.TRAINER_DEVICE,
        "--dtype", settings.TRAINER_DTYPE,
        "--threads", str(settings.TRAINER_THREADS),
        "--tensor-parallel", str(settings.TRAINER_TENSOR_PARALLEL),
    ]  # fmt: skip
    if settings.TRAINER_RANKS == 1:
        return serve
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python"]
    ranks = ["--nproc-per-node", str(settings.TRAINER_RANKS)]
    return [*torchrun, *ranks, sys.executable, "-m", "workers.leash", "0", "--", *serve]


def trainer_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the child's environment: no secrets, no network, as many threads as it was given."""
    kept = {name: value for name, value in environment.items() if not _SECRET.search(name)}
    source = os.pathsep.join(
        str(place) for place in (settings.BASE_DIR, environment.get("PYTHONPATH")) if place
    )
    return {
        **kept,
        "PYTHONPATH": source,
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": str(settings.TRAINER_THREADS),
        "OMP_WAIT_POLICY": "PASSIVE",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
