"""Is this adapter safe to offer to an engine? Read from its files, before any engine sees them.

SGLang answers 200 to adapters that kill it on first use (k and o without q and v, a lora_A of the wrong
width) and to ones that it then computes wrongly (rsLoRA, NaN weights). Each of them stops here, with the
numbers.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from django.conf import settings

from apps.adapters.store import CONFIG, WEIGHTS, StoreError, version_hash
from kernel.errors import AttuneError

TARGET_MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""What engines are started with; an adapter covers exactly these, in every layer."""

_KEY = re.compile(r"base_model\.model\.model\.layers\.(\d+)\.(self_attn|mlp)\.(\w+)\.lora_([AB])\.weight")
_WIDTH = {"F32": 4, "F16": 2, "BF16": 2}  # bytes
_BF16_EXPONENT = 0x7F80
_MAX_HEADER = 64 * 1024 * 1024
# SGLang reads every such file of the directory, and a name that it does not know ends the server
_WEIGHT_FILES = ("*.safetensors", "*.bin", "*.pt")


class PreflightRefused(AttuneError):
    """The adapter must not be loaded; the message says why, with the numbers."""

    code = "preflight"
    status = 409


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where one tensor lies in a safetensors file, and its bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: npt.NDArray[np.uint8]

    def finite(self) -> bool:
        """Return whether no element is NaN or infinite."""
        if self.dtype == "BF16":  # which numpy does not have: all exponent bits set is NaN or infinite
            exponents = self.data.view(np.uint16) & _BF16_EXPONENT
            return not bool((exponents == _BF16_EXPONENT).any())
        values = self.data.view(np.float32 if self.dtype == "F32" else np.float16)
        return bool(np.isfinite(values).all())


@dataclass(frozen=True, slots=True)
class Checked:
    """What an adapter that passed is."""

    rank: int
    alpha: float
    layers: int
    parameters: int


def preflight(directory: Path, *, sha256: str, base: Path | None = None) -> Checked:
    """Check an adapter's files against their hash, the base model and what engines are started with.

    Raises PreflightRefused, or StoreError where files are missing.
    """
    found = version_hash(directory)
    if found != sha256:
        raise PreflightRefused(f"the files hash to {found[:16]}…, the version says {sha256[:16]}…")
    config = _object(directory / CONFIG)
    rank, alpha = _configuration(config)
    shapes = expected_shapes(base or Path(settings.MODEL_PATH))
    strangers = sorted(
        {path.name for pattern in _WEIGHT_FILES for path in directory.glob(pattern)} - {WEIGHTS}
    )
    if strangers:
        raise PreflightRefused(f"{strangers[0]} would be read as weights of the adapter")
    tensors = read_safetensors(directory / WEIGHTS)
    layers = _bindings(tensors, shapes, rank)
    for name, tensor in tensors.items():
        if not tensor.finite():
            raise PreflightRefused(f"{name} holds NaN or infinite values")
    return Checked(rank, alpha, layers, sum(math.prod(tensor.shape) for tensor in tensors.values()))


def expected_shapes(base: Path) -> dict[tuple[int, str], tuple[int, int]]:
    """Return (inputs, outputs) of each module of each layer of the base that an adapter may bind to."""
    config = _object(base / "config.json")
    hidden, inner = int(config["hidden_size"]), int(config["intermediate_size"])
    heads = int(config["num_attention_heads"])
    head = int(config.get("head_dim") or hidden // heads)
    keys = int(config.get("num_key_value_heads") or heads) * head
    of_module = {
        "q_proj": (hidden, heads * head),
        "k_proj": (hidden, keys),
        "v_proj": (hidden, keys),
        "o_proj": (heads * head, hidden),
        "gate_proj": (hidden, inner),
        "up_proj": (hidden, inner),
        "down_proj": (inner, hidden),
    }
    layers = range(int(config["num_hidden_layers"]))
    return {(layer, module): shape for layer in layers for module, shape in of_module.items()}


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Map a safetensors file. Raises PreflightRefused where its header and its size do not agree."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(_MAX_HEADER, size - 8):
                raise PreflightRefused(f"{path.name}: a header of {length} bytes in a file of {size}")
            header = json.loads(file.read(length))
        body = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + length) if size > 8 + length else None
    except (OSError, ValueError) as error:
        raise PreflightRefused(f"{path.name} is not a safetensors file: {error}") from error
    return {
        name: _tensor(name, entry, body, size - 8 - length)
        for name, entry in header.items()
        if name != "__metadata__"
    }


def _tensor(
    name: str, entry: Mapping[str, Any], body: npt.NDArray[np.uint8] | None, available: int
) -> Tensor:
    try:
        dtype, shape = entry["dtype"], tuple(int(size) for size in entry["shape"])
        start, end = (int(offset) for offset in entry["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise PreflightRefused(f"{name}: its header makes no sense") from error
    if dtype not in _WIDTH:
        raise PreflightRefused(f"{name} is of type {dtype}, expected one of {', '.join(_WIDTH)}")
    need = math.prod(shape) * _WIDTH[dtype]
    if not 0 <= start <= end <= available or end - start != need or body is None:
        raise PreflightRefused(
            f"{name}: {need} bytes are needed for shape {list(shape)}, bytes {start} to {end} of {available} are named"
        )
    return Tensor(dtype, shape, body[start:end])


def _configuration(config: Mapping[str, Any]) -> tuple[int, float]:
    """Return rank and alpha; refuse every PEFT option that SGLang ignores or computes in another way."""
    if config.get("peft_type") != "LORA":
        raise PreflightRefused(f"peft_type is {config.get('peft_type')!r}, expected 'LORA'")
    for option in ("use_rslora", "use_dora", "lora_bias", "fan_in_fan_out"):
        if config.get(option):
            raise PreflightRefused(f"{option} is set: engines would compute another adapter")
    for option in (
        "rank_pattern",
        "alpha_pattern",
        "modules_to_save",
        "layers_to_transform",
        "target_parameters",
    ):
        if config.get(option):
            raise PreflightRefused(f"{option} is {config[option]!r}, must be empty")
    if config.get("bias", "none") != "none":
        raise PreflightRefused(f"bias is {config['bias']!r}, must be 'none'")
    modules = config.get("target_modules")
    if not isinstance(modules, list) or sorted(modules) != sorted(TARGET_MODULES):
        raise PreflightRefused(
            f"target_modules are {modules!r}, engines are started with {list(TARGET_MODULES)}"
        )
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if not isinstance(rank, int) or not 1 <= rank <= settings.LORA_RANK:
        raise PreflightRefused(f"rank {rank} is not between 1 and the engines' {settings.LORA_RANK}")
    if not isinstance(alpha, int | float) or not 0 < alpha < math.inf:
        raise PreflightRefused(f"lora_alpha is {alpha!r}, must be a positive number")
    return rank, float(alpha)


def _bindings(
    tensors: Mapping[str, Tensor], shapes: Mapping[tuple[int, str], tuple[int, int]], rank: int
) -> int:
    """Check that every tensor binds to a module of the base with the right shape, and none is missing."""
    bound: dict[tuple[int, str], set[str]] = defaultdict(set)
    for name, tensor in tensors.items():
        match = _KEY.fullmatch(name)
        if match is None:
            raise PreflightRefused(f"{name} binds to nothing that an engine adapts")
        layer, block, module, side = int(match[1]), match[2], match[3], match[4]
        shape = shapes.get((layer, module))
        if shape is None or block != (
            "mlp" if module in ("gate_proj", "up_proj", "down_proj") else "self_attn"
        ):
            raise PreflightRefused(f"{name} binds to nothing: the base has no such module")
        wanted = (rank, shape[0]) if side == "A" else (shape[1], rank)
        if tensor.shape != wanted:
            raise PreflightRefused(f"{name} has shape {list(tensor.shape)}, expected {list(wanted)}")
        bound[layer, module].add(side)
    for place in shapes:
        lacks = sorted({"A", "B"} - bound[place])
        if lacks:
            raise PreflightRefused(f"layer {place[0]} {place[1]} lacks lora_{' and lora_'.join(lacks)}")
    return len({layer for layer, _ in bound})


def _object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise StoreError(f"{path.name} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise PreflightRefused(f"{path.name} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise PreflightRefused(f"{path.name} is not a JSON object")
    return value
