"""From hidden states to log-probabilities, a chunk of tokens at a time.

The output matrix is frozen, so the gradient of a token's log-probability (and of its KL) with respect to that
token's hidden state is known as soon as its logits are: it is kept, [tokens, hidden], and the logits are let
go. Memory grows with the chunk, not with tokens x vocabulary, and the backward pass multiplies no matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F

from trainer.model.policy import PolicyModel

EVEN = 8
"""Tokens come in multiples of this: a product of one or two rows takes another path than
one of many, and a token's last digits must not depend on how many others happen to be in its chunk."""


@dataclass(frozen=True, slots=True)
class Teacher:
    """What the full reverse KL compares with: K teachers' hidden states at the same tokens.

    `hidden` [K, N, hidden]; `share` [K, N] sums to 1 over K: the mixture's weights, 0 for an absent teacher.
    """

    hidden: torch.Tensor
    share: torch.Tensor


@dataclass(frozen=True, slots=True)
class Scores:
    """`logprob` [N]: of the given tokens, nats, float32.

    `kl` [N]: KL(policy, teacher); None without a teacher.
    """

    logprob: torch.Tensor
    kl: torch.Tensor | None


def score(
    model: PolicyModel,
    hidden: torch.Tensor,
    tokens: torch.Tensor,
    temperature: torch.Tensor,
    *,
    chunk: int,
    teacher: Teacher | None = None,
) -> Scores:
    """hidden [N, H], tokens [N], temperature [N] -> `Scores` of softmax(hidden @ head.T / temperature).

    Differentiable in `hidden` wherever it asks for a gradient.
    """
    count = hidden.size(0)
    missing = -count % min(chunk, EVEN)
    if missing:
        hidden, tokens, temperature, teacher = _padded(hidden, tokens, temperature, teacher, missing)
    if teacher is None:
        logprob, _ = _Score.apply(hidden, tokens, temperature, None, None, model, chunk)
        return Scores(logprob[:count], None)
    logprob, kl = _Score.apply(hidden, tokens, temperature, teacher.hidden, teacher.share, model, chunk)
    return Scores(logprob[:count], kl[:count])


def _padded(
    hidden: torch.Tensor,
    tokens: torch.Tensor,
    temperature: torch.Tensor,
    teacher: Teacher | None,
    missing: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Teacher | None]:
    """With `missing` tokens more, whose scores nobody asks for."""
    if teacher is not None:
        share = F.pad(teacher.share, (0, missing))
        share[0, -missing:] = 1.0
        teacher = Teacher(F.pad(teacher.hidden, (0, 0, 0, missing)), share)
    heat = F.pad(temperature, (0, missing), value=1.0)
    return F.pad(hidden, (0, 0, 0, missing)), F.pad(tokens, (0, missing)), heat, teacher


class _Score(torch.autograd.Function):
    @staticmethod
    def forward(  # noqa: PLR0917 - autograd passes by position
        ctx: Any,
        hidden: torch.Tensor,
        tokens: torch.Tensor,
        temperature: torch.Tensor,
        teacher_hidden: torch.Tensor | None,
        teacher_share: torch.Tensor | None,
        model: PolicyModel,
        chunk: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        count = hidden.size(0)
        needs_grad = ctx.needs_input_grad[0]
        logprob = torch.zeros(count, dtype=torch.float32, device=hidden.device)
        kl = torch.zeros_like(logprob)
        grad_logprob = torch.zeros_like(hidden, dtype=torch.float32) if needs_grad else None
        grad_kl = (
            torch.zeros_like(hidden, dtype=torch.float32)
            if needs_grad and teacher_hidden is not None
            else None
        )
        head, first = model.head, model.first_token
        for start in range(0, count, chunk):
            part = slice(start, start + chunk)
            heat = temperature[part, None].float()
            logits = _shifted(hidden[part], heat, head, model)
            local = tokens[part] - first
            mine = (local >= 0) & (local < head.size(0))
            local = local.clamp(0, max(head.size(0) - 1, 0))
            picked = _sum_over_ranks(logits.gather(1, local[:, None])[:, 0] * mine, model)
            p = logits.exp()
            total = _sum_over_ranks(p.sum(1, keepdim=True), model)
            logprob[part] = picked - total[:, 0].log()
            if grad_logprob is not None:
                toward = head.index_select(0, local) * mine[:, None]
                away = p.to(head.dtype) @ head
                grad_logprob[part] = _sum_over_ranks(toward.float() - away.float() / total, model) / heat
            if teacher_hidden is not None and teacher_share is not None:
                mixed = _mixture(teacher_hidden[:, part], teacher_share[:, part], heat, head, model)
                gap = logits.sub_(total.log()).sub_(mixed)
                p.div_(total)
                kl[part] = _sum_over_ranks((p * gap).sum(1), model)
                if grad_kl is not None:
                    pull = p.mul_(gap.sub_(kl[part, None])).to(head.dtype) @ head
                    grad_kl[part] = _sum_over_ranks(pull.float(), model) / heat
        ctx.save_for_backward(grad_logprob, grad_kl)
        ctx.dtype = hidden.dtype
        return logprob, kl

    @staticmethod
    def backward(
        ctx: Any, out_logprob: torch.Tensor, out_kl: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        grad_logprob, grad_kl = ctx.saved_tensors
        grad = out_logprob[:, None] * grad_logprob
        if grad_kl is not None:
            grad = grad + out_kl[:, None] * grad_kl
        return grad.to(ctx.dtype), None, None, None, None, None, None


def _shifted(
    hidden: torch.Tensor, heat: torch.Tensor, head: torch.Tensor, model: PolicyModel
) -> torch.Tensor:
    """[n, H] -> this rank's logits / temperature less the largest of all ranks [n, V / ranks], float32.

    Worked on in place: a chunk over a whole vocabulary is what this module's time and memory go to.
    """
    logits = (hidden @ head.T).float().div_(heat)
    top = logits.amax(1, keepdim=True)
    if model.ranks.size > 1:
        dist.all_reduce(top, op=dist.ReduceOp.MAX, group=model.ranks.group)
    return logits.sub_(top)


def _mixture(
    hidden: torch.Tensor, share: torch.Tensor, heat: torch.Tensor, head: torch.Tensor, model: PolicyModel
) -> torch.Tensor:
    """Log of the teachers' mean distribution [n, V / ranks]."""
    mixed: torch.Tensor | None = None
    for one, weight in zip(hidden, share, strict=True):
        logits = _shifted(one, heat, head, model)
        total = _sum_over_ranks(logits.exp().sum(1, keepdim=True), model)
        logq = logits.sub_(total.log() - weight.log()[:, None])
        mixed = logq if mixed is None else torch.logaddexp(mixed, logq)
    if mixed is None:
        raise ValueError("a mixture of no teachers")
    return mixed


def _sum_over_ranks(tensor: torch.Tensor, model: PolicyModel) -> torch.Tensor:
    if model.ranks.size > 1:
        tensor = tensor.contiguous()
        dist.all_reduce(tensor, group=model.ranks.group)
    return tensor
