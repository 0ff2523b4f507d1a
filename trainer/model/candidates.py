"""A few tokens of each distribution: which are the likeliest, and how likely given ones are.

Their log-probabilities come from the sampled token's own: log p(v) = log p(a) + z(v) - z(a), with z the
logits. So the gradient through the whole vocabulary is the one that `head.score` has kept already, and only k
rows of the output matrix are read for each token, again in the backward pass rather than kept.
"""

from __future__ import annotations

from typing import Any

import torch
from megatron.core.tensor_parallel.mappings import (
    copy_to_tensor_model_parallel_region,
    reduce_from_tensor_model_parallel_region,
)

from trainer.model.parallel import gather_slices
from trainer.model.policy import PolicyModel


@torch.no_grad()
def likeliest(model: PolicyModel, hidden: torch.Tensor, k: int, *, chunk: int) -> torch.Tensor:
    """hidden [N, H] -> ids [N, k] of the k likeliest next tokens, likeliest first."""
    found = []
    for part in hidden.split(chunk):
        logits = (part @ model.head.T).float()
        values, ids = logits.topk(min(k, logits.size(1)), dim=1)
        values = gather_slices(values, 1, model.ranks)
        ids = gather_slices(ids + model.first_token, 1, model.ranks)
        found.append(ids.gather(1, values.topk(k, dim=1).indices))
    return torch.cat(found)


def candidate_logprobs(
    model: PolicyModel,
    hidden: torch.Tensor,
    candidates: torch.Tensor,
    *,
    token: torch.Tensor,
    logprob: torch.Tensor,
    temperature: torch.Tensor,
) -> torch.Tensor:
    """Log-probabilities [N, K], nats, of candidates [N, K].

    hidden [N, H]; token [N] with its `logprob` [N] from `head.score` of the same states and temperature [N].
    Differentiable in `hidden` and `logprob`.
    """
    logits = _logits(model, hidden, torch.cat([token[:, None], candidates], 1)) / temperature[:, None]
    return logprob[:, None] + logits[:, 1:] - logits[:, :1]


def _logits(model: PolicyModel, hidden: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """[N, H], [N, K] -> [N, K], float32; each rank knows those of its own rows of the head."""
    group = model.ranks.group
    local = ids - model.first_token
    mine = (local >= 0) & (local < model.head.size(0))
    local = local.clamp(0, max(model.head.size(0) - 1, 0))
    shared = copy_to_tensor_model_parallel_region(hidden, group=group)
    partial = _Rows.apply(shared, model.head, local) * mine
    return reduce_from_tensor_model_parallel_region(partial, group=group)


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: torch.Tensor, head: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(head, ids)
        ctx.dtype = hidden.dtype
        columns = [(hidden * head[column]).sum(1, dtype=torch.float32) for column in ids.T]
        return torch.stack(columns, 1)

    @staticmethod
    def backward(ctx: Any, out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        head, ids = ctx.saved_tensors
        grad = torch.zeros(ids.size(0), head.size(1), dtype=torch.float32, device=head.device)
        for weight, column in zip(out.T, ids.T, strict=True):
            grad.addcmul_(weight[:, None].expand(-1, head.size(1)), head[column].float())
        return grad.to(ctx.dtype), None, None
