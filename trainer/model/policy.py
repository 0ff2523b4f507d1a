"""The frozen base with one adapter on it: hidden states out, everything else is built on those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.transformer.enums import AttnBackend
from megatron.core.transformer.transformer_config import TransformerConfig

from trainer.contracts import LoraSpec
from trainer.lora.layers import AdapterPair, Wearer, attach, dressed, set_enabled
from trainer.model.checkpoint import load_into, padded_vocab
from trainer.model.modules import HostRotaryEmbedding, SdpaCoreAttention
from trainer.model.parallel import Ranks
from trainer.model.shape import ModelShape


class PolicyModel:
    """One base, at most one LoRA shape on it.

    The base's weights never change and never ask for a gradient.
    """

    def __init__(self, directory: Path, *, ranks: Ranks, dtype: torch.dtype) -> None:
        """Reads the base from `directory`. Raises `UnsupportedModelError` where it would not be exact."""
        self.directory = directory
        self.shape = ModelShape.from_directory(directory)
        self.ranks = ranks
        self.dtype = dtype
        self.lora: LoraSpec | None = None
        self._pairs: dict[str, AdapterPair] = {}
        self.gpt = _build(self.shape, ranks, dtype)
        load_into(self.gpt, directory, self.shape, ranks.rank, ranks.size)
        self.gpt.requires_grad_(requires_grad=False)
        self.gpt.eval()

    def adapter(self, spec: LoraSpec) -> dict[str, AdapterPair]:
        """The adapter's parameters by layer name, attached at the first call for this shape (float32).

        Their values are whatever the last user left: load or initialise them before use.
        """
        if self.lora != spec:
            self._pairs = attach(self.gpt, spec)
            self.lora = spec
        return self._pairs

    @contextmanager
    def bare(self) -> Iterator[None]:
        """Inside, the adapter is switched off: the base answers alone."""
        set_enabled(self.gpt, on=False)
        try:
            yield
        finally:
            set_enabled(self.gpt, on=True)

    def hidden(self, ids: torch.Tensor) -> torch.Tensor:
        """ids [B, T], padded on the right -> final hidden states [T, B, hidden], after the last norm.

        The logits of position t are `hidden[t] @ head.T`; what stands right of a token never reaches it. Time
        stays first, as Megatron has it: a transposed gradient would make every row-parallel linear's backward
        several times slower.
        """
        ids = ids.to(self.ranks.device)
        positions = torch.arange(ids.size(1), device=ids.device).expand_as(ids)
        states: torch.Tensor = self.gpt.decoder(
            hidden_states=self.gpt.embedding(input_ids=ids, position_ids=positions),
            attention_mask=None,
            rotary_pos_emb=self.gpt.rotary_pos_emb(ids.size(1)),
        )
        return states

    def hidden_together(
        self, blocks: Sequence[tuple[torch.Tensor, Mapping[str, AdapterPair]]]
    ) -> list[torch.Tensor]:
        """Blocks of ids [B_i, T_i], each with an adapter of its own -> hidden states
        [T_i, B_i, hidden] of each.

        All tokens go through the base's linears at once, without padding between blocks; attention and the
        adapters see each block as if it were alone. The pairs are of the shape that `adapter` attached last.
        """
        flat = torch.cat([ids.T.reshape(-1) for ids, _ in blocks]).to(self.ranks.device)
        positions = torch.cat(
            [torch.arange(ids.size(1)).repeat_interleave(ids.size(0)) for ids, _ in blocks]
        ).to(flat.device)
        ends = list(accumulate(ids.numel() for ids, _ in blocks))
        wearers = [
            Wearer(end - ids.numel(), end, pairs) for end, (ids, pairs) in zip(ends, blocks, strict=True)
        ]
        with dressed(self.gpt, wearers), self._blocks([(ids.size(1), ids.size(0)) for ids, _ in blocks]):
            states: torch.Tensor = self.gpt.decoder(
                hidden_states=self.gpt.embedding(input_ids=flat[None], position_ids=positions[None]),
                attention_mask=None,
                rotary_pos_emb=self.gpt.rotary_pos_emb(int(positions.max()) + 1)[positions],
            )
        return [
            states[one.start : one.stop].reshape(ids.size(1), ids.size(0), -1)
            for one, (ids, _) in zip(wearers, blocks, strict=True)
        ]

    @contextmanager
    def _blocks(self, sizes: list[tuple[int, int]]) -> Iterator[None]:
        attention = [module for module in self.gpt.modules() if isinstance(module, SdpaCoreAttention)]
        for module in attention:
            module.blocks = sizes
        try:
            yield
        finally:
            for module in attention:
                module.blocks = None

    @property
    def head(self) -> torch.Tensor:
        """This rank's rows of the output matrix [vocab / ranks, hidden], padding rows left out."""
        weight = (
            self.gpt.shared_embedding_or_output_weight() if self.shape.tied else self.gpt.output_layer.weight
        )
        first = self.first_token
        return weight[: max(0, min(weight.size(0), self.shape.vocab - first))].detach()

    @property
    def first_token(self) -> int:
        """Token id of this rank's first row of `head`."""
        return self.ranks.rank * (padded_vocab(self.shape.vocab, self.ranks.size) // self.ranks.size)


def _build(shape: ModelShape, ranks: Ranks, dtype: torch.dtype) -> Any:
    on_host = ranks.device.type == "cpu"
    config = TransformerConfig(
        num_layers=shape.layers,
        hidden_size=shape.hidden,
        ffn_hidden_size=shape.ffn,
        num_attention_heads=shape.heads,
        num_query_groups=shape.kv_heads,
        kv_channels=shape.head_dim,
        normalization="RMSNorm",
        layernorm_epsilon=shape.norm_eps,
        gated_linear_unit=True,
        activation_func=F.silu,
        add_bias_linear=False,
        add_qkv_bias=shape.qkv_bias,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        use_cpu_initialization=on_host,
        perform_initialization=False,
        tensor_model_parallel_size=ranks.size,
        params_dtype=dtype,
        bf16=dtype == torch.bfloat16,
        gradient_accumulation_fusion=False,
        masked_softmax_fusion=False,
        bias_activation_fusion=False,
        bias_dropout_fusion=False,
        apply_rope_fusion=False,
        persist_layer_norm=False,
        attention_backend=AttnBackend.local,
    )
    spec = get_gpt_layer_local_spec(normalization="RMSNorm", qk_layernorm=shape.qk_norm)
    spec.submodules.self_attention.submodules.core_attention = SdpaCoreAttention
    gpt = GPTModel(
        config=config,
        transformer_layer_spec=spec,
        vocab_size=padded_vocab(shape.vocab, ranks.size),
        max_sequence_length=shape.max_tokens,
        parallel_output=True,
        share_embeddings_and_output_weights=shape.tied,
        position_embedding_type="rope",
        rotary_base=shape.rope_theta,
    )
    if on_host:
        gpt.rotary_pos_emb = HostRotaryEmbedding(
            kv_channels=shape.head_dim,
            rotary_percent=1.0,
            rotary_base=shape.rope_theta,
            use_cpu_initialization=True,
        )
    return gpt.to(ranks.device)
