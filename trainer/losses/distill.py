"""On-policy distillation on sampled tokens:
how much more the hinted teacher likes each token is its advantage."""

from __future__ import annotations

import torch


def distill_advantage(teacher: torch.Tensor, prox: torch.Tensor, clip: float) -> torch.Tensor:
    """teacher, prox [N]: log-probabilities of the student's own tokens,
    nats -> clip(teacher - prox, +-clip)."""
    return (teacher - prox.detach()).clamp(-clip, clip)


def mixture_logprob(logprobs: torch.Tensor) -> torch.Tensor:
    """[K, N] of K teachers -> [N]: log of their mean probability."""
    return logprobs.logsumexp(0) - torch.tensor(float(logprobs.size(0))).log()
