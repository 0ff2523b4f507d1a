"""The two Megatron modules that assume a GPU, in a form that runs anywhere."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from megatron.core.models.common.embeddings.rotary_pos_embedding import RotaryEmbedding
from megatron.core.transformer.module import MegatronModule
from megatron.core.transformer.transformer_config import TransformerConfig


class SdpaCoreAttention(MegatronModule):
    """Causal attention by torch's own kernel: no [tokens, tokens] matrix is kept, on the CPU or the GPU."""

    def __init__(  # noqa: PLR0917 - Megatron's signature
        self,
        config: TransformerConfig,
        layer_number: int,
        attn_mask_type: Any,
        attention_type: str,
        attention_dropout: float | None = None,
        softmax_scale: float | None = None,
        cp_comm_type: str | None = None,
        pg_collection: Any = None,
    ) -> None:
        super().__init__(config=config)
        self.scale = softmax_scale
        self.blocks: list[tuple[int, int]] | None = None

    def forward(  # noqa: PLR0917 - Megatron's signature
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        attn_mask_type: Any = None,
        attention_bias: torch.Tensor | None = None,
        packed_seq_params: Any = None,
    ) -> torch.Tensor:
        """query [T, B, heads, D], key and value [T, B, groups, D] -> [T, B, heads * D]; padding stands right.

        With `blocks` [(T_i, B_i)] set, the tokens [N, 1, ...] are blocks of [T_i, B_i], one after the other,
        each computed as it would be alone.
        """
        if self.blocks is None:
            return self._attend(query, key, value)
        sizes = [length * rows for length, rows in self.blocks]
        parts = zip(self.blocks, query.split(sizes), key.split(sizes), value.split(sizes), strict=True)
        return torch.cat(
            [
                self._attend(*(x.reshape(length, rows, *x.shape[2:]) for x in qkv)).flatten(0, 1)[:, None]
                for (length, rows), *qkv in parts
            ]
        )

    def _attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        q, k, v = (x.permute(1, 2, 0, 3) for x in (query, key, value))
        out = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=self.scale, enable_gqa=q.size(1) != k.size(1)
        )
        return out.permute(2, 0, 1, 3).reshape(out.size(2), out.size(0), -1)


class HostRotaryEmbedding(RotaryEmbedding):
    """Rotary embedding that stays on the host; Megatron's moves itself to a GPU at the first call."""

    def get_emb(self, max_seq_len: int, offset: int = 0) -> torch.Tensor:
        freqs = self.get_freqs_non_repeated(max_seq_len, offset)
        return torch.cat((freqs, freqs), dim=-1)[:, None, None, :]
