"""Top-k select: the teacher pulls on each of the student's k likeliest tokens,
and the hint that speaks of the same tokens as the student is the one that teaches."""

from __future__ import annotations

import torch

from trainer.contracts import LossConfig
from trainer.losses.behaviour import log_ratio


def overlap(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """student [N, K], teacher [H, N, K]: ids -> [H]:
    of each of H hints, the mean share of the student's K tokens that are among its teacher's."""
    shared = (student[None, :, :, None] == teacher[:, :, None, :]).any(3)
    return shared.double().mean((1, 2))


def best_hint(student: torch.Tensor, teacher: torch.Tensor) -> int:
    """Index of the hint whose teacher overlaps most; of equals the first, which is the best judged."""
    return int(overlap(student, teacher).argmax().item())


def select_loss(
    logprob: torch.Tensor, prox: torch.Tensor, teacher: torch.Tensor, config: LossConfig
) -> torch.Tensor:
    """All [N, K] over the student's K tokens -> [N]:
    -sum over v of min(r_v A_v, clip(r_v, 1 - eps, 1 + eps_hi) A_v).

    A_v = w_v clip(log teacher - log prox, +-C); w_v = prox, normalised over the K; r_v = policy / prox. At r
    = 1 its gradient is that of the reverse KL over the set, with each token's pull bounded.
    """
    prox = prox.detach()
    pull = prox.softmax(1) * (teacher.detach() - prox).clamp(-config.opd_clip, config.opd_clip)
    ratio = log_ratio(logprob, prox).exp()
    bound = ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    return -torch.minimum(ratio * pull, bound * pull).sum(1)
