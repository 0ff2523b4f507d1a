"""From Megatron's fused linears to PEFT's files and back, exactly;
from a rank's slices to whole matrices and back.

Megatron's q, k and v (and its gate and up) are one linear, so they share one A. Written out per projection
that is an ordinary PEFT adapter; read back, the shared A must be equal, bit for bit.
"""

from __future__ import annotations

import torch

from trainer.model.parallel import Ranks, gather_slices
from trainer.model.shape import ModelShape

Tensors = dict[str, torch.Tensor]
_PREFIX = "base_model.model."


class LayoutError(ValueError):
    """The files do not hold an adapter of this model and shape."""


def whole(name: str, a: torch.Tensor, b: torch.Tensor, ranks: Ranks) -> tuple[torch.Tensor, torch.Tensor]:
    """A rank's slices of one pair (or of its Adam moments) -> the whole matrices, on every rank."""
    if name.endswith(("linear_proj", "linear_fc2")):
        return gather_slices(a, 1, ranks), b
    if name.endswith("linear_fc1"):
        gate, up = (gather_slices(part, 0, ranks) for part in b.chunk(2, 0))
        return a, torch.cat([gate, up], 0)
    return a, gather_slices(b, 0, ranks)


def sliced(name: str, a: torch.Tensor, b: torch.Tensor, ranks: Ranks) -> tuple[torch.Tensor, torch.Tensor]:
    """What `whole` joined, cut for this rank again."""
    if name.endswith(("linear_proj", "linear_fc2")):
        return a.chunk(ranks.size, 1)[ranks.rank], b
    if name.endswith("linear_fc1"):
        return a, torch.cat([part.chunk(ranks.size, 0)[ranks.rank] for part in b.chunk(2, 0)], 0)
    return a, b.chunk(ranks.size, 0)[ranks.rank]


def whole_sizes(name: str, shape: ModelShape) -> tuple[int, int]:
    """(inputs, outputs) of a fused linear before it is cut."""
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    sizes = {
        "linear_qkv": (shape.hidden, queries + 2 * keys),
        "linear_proj": (queries, shape.hidden),
        "linear_fc1": (shape.hidden, 2 * shape.ffn),
        "linear_fc2": (shape.ffn, shape.hidden),
    }
    return sizes[name.rsplit(".", 1)[1]]


def to_peft(pairs: dict[str, tuple[torch.Tensor, torch.Tensor]], shape: ModelShape) -> Tensors:
    """Whole fused pairs -> PEFT's tensors by PEFT's names."""
    tensors: Tensors = {}
    for name, (a, b) in pairs.items():
        for module, part in zip(modules(name), _split(name, b, shape), strict=True):
            tensors[f"{_PREFIX}{module}.lora_A.weight"] = a.clone().contiguous()
            tensors[f"{_PREFIX}{module}.lora_B.weight"] = part.clone().contiguous()
    return tensors


def from_peft(
    tensors: Tensors, names: list[str], shape: ModelShape, rank: int
) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """PEFT's tensors -> whole fused pairs.

    Raises `LayoutError` where one is missing, left over or does not fit.
    """
    left = dict(tensors)
    pairs = {}
    for name in names:
        inputs, outputs = whole_sizes(name, shape)
        sizes = [tuple(part.shape) for part in _split(name, torch.empty(outputs, rank), shape)]
        a_parts = [
            _take(left, f"{_PREFIX}{module}.lora_A.weight", (rank, inputs)) for module in modules(name)
        ]
        b_parts = [
            _take(left, f"{_PREFIX}{module}.lora_B.weight", size)
            for module, size in zip(modules(name), sizes, strict=True)
        ]
        if not all(torch.equal(a_parts[0], other) for other in a_parts[1:]):
            raise LayoutError(f"{', '.join(modules(name))}: one linear here, so their A must be the same")
        pairs[name] = (a_parts[0], _fuse(name, b_parts, shape))
    if left:
        raise LayoutError(f"{min(left)} belongs to no target module")
    return pairs


def modules(name: str) -> tuple[str, ...]:
    """Which of transformers' modules a fused linear holds, in its order."""
    layer = name.removeprefix("decoder.layers.").split(".", 1)[0]
    kinds = {
        "linear_qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        "linear_proj": ("self_attn.o_proj",),
        "linear_fc1": ("mlp.gate_proj", "mlp.up_proj"),
        "linear_fc2": ("mlp.down_proj",),
    }
    return tuple(f"model.layers.{layer}.{kind}" for kind in kinds[name.rsplit(".", 1)[1]])


def _split(name: str, b: torch.Tensor, shape: ModelShape) -> list[torch.Tensor]:
    """Rows of a fused B [out, rank] that belong to each of `modules(name)`."""
    if name.endswith("linear_qkv"):
        per_group = shape.heads // shape.kv_heads * shape.head_dim
        groups = b.view(shape.kv_heads, per_group + 2 * shape.head_dim, b.size(1))
        parts = groups.split([per_group, shape.head_dim, shape.head_dim], 1)
        return [part.reshape(-1, b.size(1)) for part in parts]
    return list(b.chunk(len(modules(name)), 0))


def _fuse(name: str, parts: list[torch.Tensor], shape: ModelShape) -> torch.Tensor:
    """What `_split` took apart."""
    if name.endswith("linear_qkv"):
        grouped = [part.view(shape.kv_heads, -1, part.size(1)) for part in parts]
        return torch.cat(grouped, 1).reshape(-1, parts[0].size(1))
    return torch.cat(parts, 0)


def _take(left: Tensors, key: str, size: tuple[int, ...]) -> torch.Tensor:
    if key not in left:
        raise LayoutError(f"{key} is missing")
    tensor = left.pop(key).float()
    if tuple(tensor.shape) != size:
        raise LayoutError(f"{key} is {tuple(tensor.shape)}, expected {size}")
    return tensor
