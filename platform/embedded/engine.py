"""How to start one SGLang server with LoRA: on a CPU, or on an NVIDIA GPU with its normal backends."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from embedded.home import write_private
from kernel import machine

# every linear layer of a block: what the trainer adapts, and what the server reserves memory for
TARGET_MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


# distinct adapters in a batch, and adapters kept loaded: without and with a GPU. Without one a batch has as
# many slots as requests: then none ever waits for a slot, and a slot costs the size of an adapter
BATCH_SLOTS = (8, 8)
LOADED_SLOTS = (24, 64)


@dataclass(frozen=True, slots=True)
class Engine:
    """One server on this machine.

    `device` is "cpu" or "cuda"; `max_rank` bounds the rank of every adapter. Slots: distinct adapters in one
    batch (the base takes one of them) and adapters kept loaded.
    """

    model: Path
    port: int
    api_key: str
    admin_key: str
    device: str = "cpu"
    dtype: str = "bfloat16"
    max_rank: int = 16
    batch_slots: int = 4
    loaded_slots: int = 8
    threads: int = 1
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self.port}"

    def options(self) -> dict[str, object]:
        """Return SGLang's options by name, without dashes in front."""
        common: dict[str, object] = {
            "model-path": str(self.model),
            "served-model-name": "base",
            "host": self.host,
            "port": self.port,
            "dtype": self.dtype,
            "skip-server-warmup": True,
            "enable-metrics": True,
            "log-level-http": "warning",
            "enable-lora": True,
            "max-lora-rank": self.max_rank,
            "lora-target-modules": list(TARGET_MODULES),
            "max-loras-per-batch": self.batch_slots,
            "max-loaded-loras": self.loaded_slots,
            "api-key": self.api_key,
            "admin-api-key": self.admin_key,
        }
        if self.device == "cpu":
            return common | {
                "device": "cpu",
                "attention-backend": "torch_native",
                "lora-backend": "torch_native",
                "max-total-tokens": 20480,
                # two more than are asked aside at a time: whoever comes meanwhile has a place at once
                "max-running-requests": 10,
                # an idle scheduler polls, which is a whole core; this one waits for a message
                "sleep-on-idle": True,
            }
        # the trainer works on the same card: leave it half
        return common | {"mem-fraction-static": 0.5}

    def command(self, config: Path) -> list[str]:
        """Return the command line. The options go to `config` (NAME.yaml):
        they hold keys, and `ps` shows command lines."""
        write_private(config, json.dumps(self.options(), indent=2))  # JSON is YAML
        return [sys.executable, "-m", "embedded.serve", str(config)]

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return the variables to run with, on top of `base`."""
        added = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        if self.device == "cpu":
            # spinning threads beside a trainer cost 2.5 x; more than one is no faster for a small model
            added |= {
                "SGLANG_USE_CPU_ENGINE": "1",
                "OMP_NUM_THREADS": str(self.threads),
                "OMP_WAIT_POLICY": "PASSIVE",
                "CUDA_VISIBLE_DEVICES": "",
            }
        return {**base, **added}

    def ready(self, *, timeout_s: float = 2.0) -> bool:
        """Return whether the server takes requests.
        (`/health` would generate a token, which takes a second.)"""
        return answers(f"{self.url}/ready", key=self.api_key, timeout_s=timeout_s)


def answers(url: str, *, key: str = "", timeout_s: float = 2.0) -> bool:
    """Return whether a GET of `url` succeeds."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as response:  # noqa: S310 - our own addresses
            return bool(200 <= response.status < 300)
    except (OSError, ValueError, urllib.error.URLError):
        return False


def has_nvidia_gpu() -> bool:
    """Return whether this machine has an NVIDIA GPU with a working driver.

    ATTUNE_DEVICE=cpu or cuda overrides it.
    """
    chosen = os.environ.get("ATTUNE_DEVICE", "")
    if chosen:
        return chosen == "cuda"
    gpus = Path("/proc/driver/nvidia/gpus")
    return Path("/dev/nvidiactl").exists() and gpus.is_dir() and any(gpus.iterdir())


def fast_dtype() -> str:
    """Return the number format that this machine computes a model in most quickly.

    bfloat16 takes half of the memory everywhere, and is 2.5 x as fast where the hardware multiplies it; a CPU that
    does not is up to seven times slower with it than with float32 (docs/decisions/sglang-on-a-cpu.md).
    """
    return "bfloat16" if has_nvidia_gpu() or machine.has_bfloat16() else "float32"


def main() -> int:
    """Become a server for the settings in the environment:
    `python -m embedded.engine [PORT]`, for deployments."""
    gpu = has_nvidia_gpu()
    engine = Engine(
        model=Path(os.environ["MODEL_PATH"]),
        port=int(sys.argv[1]) if len(sys.argv) > 1 else 30000,
        api_key=os.environ["ENGINE_API_KEY"],
        admin_key=os.environ["ENGINE_ADMIN_KEY"],
        dtype=os.environ.get("ENGINE_DTYPE") or fast_dtype(),
        device="cuda" if gpu else "cpu",
        max_rank=int(os.environ.get("LORA_RANK") or 16),
        batch_slots=BATCH_SLOTS[gpu],
        loaded_slots=LOADED_SLOTS[gpu],
        host="0.0.0.0",  # noqa: S104 - inside a container, whose network decides who reaches it
    )
    command = engine.command(Path(tempfile.mkdtemp(prefix="engine-")) / "engine.yaml")
    os.execve(command[0], command, engine.environment(os.environ))  # noqa: S606 - an argument list


if __name__ == "__main__":
    sys.exit(main())
