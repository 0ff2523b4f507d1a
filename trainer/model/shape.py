"""Reading a transformers `config.json`: which shapes the trainer computes exactly, and which it refuses."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.errors import UnsupportedModelError

FAMILIES = ("llama", "qwen2", "qwen3")


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of a decoder-only model, in transformers' meaning of each word."""

    family: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    max_tokens: int
    norm_eps: float
    rope_theta: float
    tied: bool

    @property
    def qkv_bias(self) -> bool:
        """Qwen2 alone has biases, on q, k and v."""
        return self.family == "qwen2"

    @property
    def qk_norm(self) -> bool:
        """Qwen3 alone normalises q and k per head."""
        return self.family == "qwen3"

    @property
    def parameters(self) -> int:
        """Weights in the whole model, a tied head counted once."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = self.hidden * (2 * queries + 2 * keys)
        attention += (queries + 2 * keys) * self.qkv_bias + 2 * self.head_dim * self.qk_norm
        layer = attention + 3 * self.hidden * self.ffn + 2 * self.hidden
        return self.vocab * self.hidden * (1 if self.tied else 2) + self.layers * layer + self.hidden

    @classmethod
    def from_directory(cls, directory: Path) -> ModelShape:
        """Reads `config.json`. Raises `UnsupportedModelError` for anything that would be computed wrongly."""
        try:
            config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UnsupportedModelError(f"{directory}: no readable config.json ({error})") from error
        _refuse_what_would_be_wrong(config, str(directory))
        heads = config["num_attention_heads"]
        return cls(
            family=config["model_type"],
            layers=config["num_hidden_layers"],
            hidden=config["hidden_size"],
            ffn=config["intermediate_size"],
            heads=heads,
            kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or config["hidden_size"] // heads,
            vocab=config["vocab_size"],
            max_tokens=config["max_position_embeddings"],
            norm_eps=config["rms_norm_eps"],
            rope_theta=_rope_theta(config),
            tied=bool(config.get("tie_word_embeddings", False)),
        )


def _rope(config: dict[str, Any]) -> dict[str, Any]:
    """transformers 5 keeps all of it in `rope_parameters`; before that a scaling stood in `rope_scaling`."""
    return {**(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}


def _rope_theta(config: dict[str, Any]) -> float:
    return float(_rope(config).get("rope_theta") or config.get("rope_theta") or 10_000.0)


def _refuse_what_would_be_wrong(config: dict[str, Any], where: str) -> None:
    def refuse(what: str) -> None:
        raise UnsupportedModelError(f"{where}: {what}")

    family = config.get("model_type")
    if family not in FAMILIES:
        refuse(f"model_type {family!r} is none of {', '.join(FAMILIES)}")
    rope = _rope(config)
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if kind != "default":
        refuse(f"rope scaling {kind!r} is not supported")
    if float(rope.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0) != 1.0:
        refuse("a partial rotary embedding is not supported")
    if config.get("use_sliding_window"):
        refuse("sliding window attention is not supported")
    if config.get("hidden_act", "silu") != "silu":
        refuse(f"activation {config.get('hidden_act')!r} is not supported")
    # Qwen2's q, k, v biases are implied by its family and its config says nothing of them.
    if config.get("mlp_bias") or (family != "qwen2" and config.get("attention_bias")):
        refuse("biases are supported on Qwen2's q, k and v only")
    if "quantization_config" in config:
        refuse("quantised weights are not supported; convert them to plain ones first")
