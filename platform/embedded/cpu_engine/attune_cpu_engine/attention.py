"""SGLang's `torch_native` attention, without the work that a processor is slow at.

The released one asks torch for attention over fewer key heads than query heads. For one new token in bfloat16
torch computes that by its slowest path; and for new tokens behind cached ones it is asked for the rows of
the cached ones too, which are then thrown away. Here the query heads that share a key head are rows of one
matrix, and only new rows are asked for. What comes out is the same but for rounding. Windows, encoders and
cross-attention stay SGLang's own.
"""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
from torch.nn.functional import scaled_dot_product_attention


def attend(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, *, scale: float | None, causal: bool
) -> torch.Tensor:
    """Return attention of the last tokens of a request over all of it, `[heads, new, value dim]`.

    `query` is `[heads, new, dim]`, `keys` and `values` are `[key heads, seen, dim]`. Query head h reads key head
    h // (heads / key heads), as everywhere with grouped-query attention (Ainslie et al. 2023).
    """
    heads, new, width = query.shape
    shared, seen = keys.shape[:2]
    if causal and new == seen:  # torch's own causal kernel needs no mask
        whole = scaled_dot_product_attention(
            query[None], keys[None], values[None], is_causal=True, scale=scale, enable_gqa=heads != shared
        )
        return whole[0]
    group = heads // shared
    mask = None
    if causal and new > 1:
        mask = torch.ones(new, seen, dtype=torch.bool).tril(seen - new).repeat(group, 1)
    rows = query.reshape(1, shared, group * new, width)
    found = scaled_dot_product_attention(rows, keys[None], values[None], attn_mask=mask, scale=scale)
    return found.reshape(heads, new, values.shape[2])


class RowsOfOneMatrix(TorchNativeAttnBackend):
    """The `torch_native` backend of a process without an accelerator.

    `where` is what SGLang hands both methods by position, in this order: key cache, value cache, table of
    places `[slots, longest request]`, slot of each request, tokens seen of each, then, where it extends, how many
    of them were there before and how many are new, and what an encoder read.
    """

    def _run_sdpa_forward_extend(
        self, query: torch.Tensor, output: torch.Tensor, *where: Any, **kind: Any
    ) -> torch.Tensor:
        keys, values, table, slots, seen, _, new, encoded = where
        if encoded is not None or not kind["causal"] or kind["sliding_window_size"] is not None:
            return super()._run_sdpa_forward_extend(query, output, *where, **kind)
        places = _places(table, slots, seen)
        return _each(query, output, (keys, values), places, new.tolist(), scale=kind["scaling"])

    def _run_sdpa_forward_decode(
        self, query: torch.Tensor, output: torch.Tensor, *where: Any, **kind: Any
    ) -> torch.Tensor:
        keys, values, table, slots, seen, encoded = where
        if encoded is not None or kind["sliding_window_size"] is not None:
            return super()._run_sdpa_forward_decode(query, output, *where, **kind)
        places = _places(table, slots, seen)
        return _each(query, output, (keys, values), places, [1] * len(places), scale=kind["scaling"])


def _places(table: torch.Tensor, slots: torch.Tensor, seen: torch.Tensor) -> list[torch.Tensor]:
    """Return where in the caches the tokens of each request lie."""
    return [table[slot, :tokens] for slot, tokens in zip(slots.tolist(), seen.tolist(), strict=True)]


def _each(
    query: torch.Tensor,
    output: torch.Tensor,
    caches: tuple[torch.Tensor, torch.Tensor],
    places: list[torch.Tensor],
    new: list[int],
    *,
    scale: float | None,
) -> torch.Tensor:
    """Fill `output` `[tokens, heads, dim]`, one request after the other, and return it."""
    start = 0
    for place, tokens in zip(places, new, strict=True):
        keys, values = (cache[place].to(query.dtype).transpose(0, 1) for cache in caches)
        rows = query[start : start + tokens].transpose(0, 1)
        # one new token sees all that is there
        found = attend(rows, keys, values, scale=scale, causal=tokens > 1)
        output[start : start + tokens] = found.transpose(0, 1)
        start += tokens
    return output
