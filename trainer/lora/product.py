"""A frozen linear and the adapters on it as one product, forward and backward.

Written out operation by operation, the adapter's part passes several times over [tokens, outputs], and where
several adapters share a pass autograd fills a gradient of all tokens for each of them. Here the low-rank
products are added where the base's product lies, and the scale multiplies `rank` numbers a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist


@dataclass(frozen=True, slots=True)
class Layout:
    """Which rows of a product run under which adapter, and how the layer is cut."""

    rows: tuple[slice, ...]
    """One stretch for each pair of matrices; they follow one another and cover all rows."""
    scale: float
    """The low-rank product is multiplied by this."""
    row_parallel: bool
    """Inputs are cut over the ranks, and A with them; otherwise the outputs, and B."""
    group: Any | None
    """The ranks that share the layer; None: this one alone."""


def adapted(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    layout: Layout,
    pairs: list[tuple[torch.Tensor, torch.Tensor]],
) -> torch.Tensor:
    """x [N, in] -> x W^T + bias + scale (x A^T) B^T [N, out],
    each stretch of rows under its own A [rank, in] and B [out, rank]. Low-rank products are computed in the
    adapters' type, whatever the base's is.

    Stretch by stretch the result and the gradients have the bits that they have in a call of their own, as
    far as rows of a large matrix product do.
    """
    flat = [matrix for pair in pairs for matrix in pair]
    out: torch.Tensor = _Adapted.apply(x, weight, bias, layout, *flat)
    return out


class _Adapted(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        layout: Layout,
        *pairs: torch.Tensor,
    ) -> torch.Tensor:
        y = x @ weight.t()
        wide = x.to(pairs[0].dtype)
        low = wide.new_empty(x.size(0), pairs[0].size(0))
        for rows, a in zip(layout.rows, pairs[::2], strict=True):
            torch.mm(wide[rows], a.t(), out=low[rows])
        if layout.row_parallel and layout.group is not None:
            dist.all_reduce(y, group=layout.group)
            dist.all_reduce(low, group=layout.group)
        low.mul_(layout.scale)
        for rows, b in zip(layout.rows, pairs[1::2], strict=True):
            _add_product(y[rows], low[rows], b.t())
        if bias is not None:
            y.add_(bias)
        ctx.save_for_backward(x, weight, low, *pairs)
        ctx.layout = layout
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight, low, *pairs = ctx.saved_tensors
        layout: Layout = ctx.layout
        cut = None if layout.row_parallel else layout.group
        grad = grad.contiguous()
        wide, wide_grad = x.to(low.dtype), grad.to(low.dtype)
        grad_low = torch.empty_like(low)
        for rows, b in zip(layout.rows, pairs[1::2], strict=True):
            torch.mm(wide_grad[rows], b, out=grad_low[rows])
        if cut is not None:
            dist.all_reduce(grad_low, group=cut)
        grad_low.mul_(layout.scale)
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = grad @ weight
            if cut is not None:
                dist.all_reduce(grad_x, group=cut)
            for rows, a in zip(layout.rows, pairs[::2], strict=True):
                _add_product(grad_x[rows], grad_low[rows], a)
        found: list[torch.Tensor] = []
        for rows in layout.rows:
            found += [grad_low[rows].t() @ wide[rows], wide_grad[rows].t() @ low[rows]]
        return grad_x, None, None, None, *found


def _add_product(into: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """into += left right, in place; the product is rounded once where `into` is of a smaller type."""
    if into.dtype == left.dtype:
        into.addmm_(left, right)
    else:
        into.add_(left @ right)
