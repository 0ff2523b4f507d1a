"""Weights of a plain transformers directory, cut for one rank and copied straight into a GPTModel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from safetensors import safe_open

from trainer.errors import UnsupportedModelError
from trainer.model.shape import ModelShape

Read = Callable[[str], torch.Tensor]
Slices = Iterator[tuple[str, torch.Tensor]]


def open_weights(directory: Path) -> Read:
    """A reader of single tensors by transformers' names: sharded or one file, never all of it at once."""
    index = directory / "model.safetensors.index.json"
    if index.exists():
        where = {name: directory / file for name, file in json.loads(index.read_text())["weight_map"].items()}
    else:
        single = directory / "model.safetensors"
        if not single.exists():
            raise UnsupportedModelError(f"{directory}: no model.safetensors and no index of shards")
        with safe_open(single, framework="pt") as file:
            where = dict.fromkeys(file.keys(), single)

    def read(name: str) -> torch.Tensor:
        if name not in where:
            raise UnsupportedModelError(f"{directory}: tensor {name!r} is missing")
        with safe_open(where[name], framework="pt") as file:
            return file.get_tensor(name)

    return read


def slices(read: Read, shape: ModelShape, rank: int, size: int) -> Slices:
    """Megatron's names and this rank's part of each tensor, layer by layer.

    Megatron keeps q, k and v of each key-value group together, and gate above up; rows are cut for what is
    column-parallel, columns for what is row-parallel (`linear_proj`, `linear_fc2`).
    """

    def rows(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.chunk(size, 0)[rank]

    def qkv(prefix: str, kind: str) -> torch.Tensor:
        q, k, v = (read(f"{prefix}self_attn.{name}_proj.{kind}") for name in "qkv")
        tail = q.shape[1:]
        per_group = shape.heads // shape.kv_heads * shape.head_dim
        grouped = (
            q.view(shape.kv_heads, per_group, *tail),
            k.view(shape.kv_heads, shape.head_dim, *tail),
            v.view(shape.kv_heads, shape.head_dim, *tail),
        )
        return rows(torch.cat(grouped, 1)).reshape(-1, *tail)

    yield "embedding.word_embeddings.weight", rows(_padded(read("model.embed_tokens.weight"), size))
    for layer in range(shape.layers):
        theirs, ours = f"model.layers.{layer}.", f"decoder.layers.{layer}."
        yield f"{ours}input_layernorm.weight", read(f"{theirs}input_layernorm.weight")
        yield f"{ours}self_attention.linear_qkv.weight", qkv(theirs, "weight")
        if shape.qkv_bias:
            yield f"{ours}self_attention.linear_qkv.bias", qkv(theirs, "bias")
        if shape.qk_norm:
            yield f"{ours}self_attention.q_layernorm.weight", read(f"{theirs}self_attn.q_norm.weight")
            yield f"{ours}self_attention.k_layernorm.weight", read(f"{theirs}self_attn.k_norm.weight")
        out = read(f"{theirs}self_attn.o_proj.weight")
        yield f"{ours}self_attention.linear_proj.weight", out.chunk(size, 1)[rank]
        yield f"{ours}pre_mlp_layernorm.weight", read(f"{theirs}post_attention_layernorm.weight")
        gate, up = (rows(read(f"{theirs}mlp.{name}_proj.weight")) for name in ("gate", "up"))
        yield f"{ours}mlp.linear_fc1.weight", torch.cat([gate, up], 0)
        yield f"{ours}mlp.linear_fc2.weight", read(f"{theirs}mlp.down_proj.weight").chunk(size, 1)[rank]
    yield "decoder.final_layernorm.weight", read("model.norm.weight")
    if not shape.tied:
        yield "output_layer.weight", rows(_padded(read("lm_head.weight"), size))


def padded_vocab(vocab: int, size: int) -> int:
    """Rows of the embedding once every rank holds equally many."""
    return -(-vocab // size) * size


def load_into(model: torch.nn.Module, directory: Path, shape: ModelShape, rank: int, size: int) -> None:
    """Copies every weight of this rank.

    Raises `UnsupportedModelError` where one is missing or of another shape.
    """
    read = open_weights(directory)
    parameters = dict(model.named_parameters())
    for name, tensor in slices(read, shape, rank, size):
        target = parameters.pop(name)
        if target.shape != tensor.shape:
            raise UnsupportedModelError(
                f"{directory}: {name} is {tuple(tensor.shape)}, expected {tuple(target.shape)}"
            )
        with torch.no_grad():
            target.copy_(tensor)
    if parameters:
        raise UnsupportedModelError(f"{directory}: nothing was read for {sorted(parameters)[0]}")


def _padded(tensor: torch.Tensor, size: int) -> torch.Tensor:
    missing = padded_vocab(tensor.shape[0], size) - tensor.shape[0]
    if not missing:
        return tensor
    return torch.cat([tensor, tensor.new_zeros(missing, *tensor.shape[1:])])
