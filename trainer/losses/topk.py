"""Reverse KL over the student's k likeliest tokens and one bin for all others.

The tail bin makes both sides whole distributions, so the divergence is never negative, bounds the whole
vocabulary's from below (data processing inequality) and cannot be lowered by pushing mass out of the k
tokens.
"""

from __future__ import annotations

import torch

TINY = 1e-6
"""Least mass of a tail: under it a logarithm would be of rounding."""


def top_k_kl(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """student, teacher [N, K]: log-probabilities of the same K tokens, nats -> [N]:
    sum over the K + 1 bins of p (log p - log q). The gradient passes through `student`."""
    teacher = teacher.detach()
    p = student.exp()
    inside = (p * (student - teacher)).sum(1)
    rest, other = tail(student), tail(teacher)
    return inside + rest * (rest.log() - other.log())


def tail(logprobs: torch.Tensor) -> torch.Tensor:
    """[N, K] -> [N]: mass outside the K tokens, at least `TINY`."""
    return (1 - logprobs.exp().sum(1)).clamp(min=TINY)
