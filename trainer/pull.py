"""What top-k distillation compares, token by token:
the student's k likeliest tokens, as the policy,
the policy at the start of the step and the hinted teacher see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from trainer.contracts import StepConfig
from trainer.losses.combined import Candidates
from trainer.losses.select import best_hint
from trainer.model.candidates import candidate_logprobs, likeliest
from trainer.model.head import Teacher, score
from trainer.model.policy import PolicyModel


@dataclass(frozen=True, slots=True)
class Place:
    """Flat reply tokens [N] and the states [N, H] that predict them."""

    hidden: torch.Tensor
    tokens: torch.Tensor
    logprob: torch.Tensor
    temperature: torch.Tensor
    sizes: Sequence[int]


def candidates(
    model: PolicyModel, now: Place, before: torch.Tensor | None, teacher: Teacher, config: StepConfig
) -> Candidates:
    """`before` [N, H]: the policy's states as the step began; None: those of `now`.

    `teacher` holds every hint's states; `top_k` takes the mixture that its shares say, `top_k_select` one for
    each reply.
    """
    chunk, k = config.chunk_tokens, min(config.loss.top_k, model.shape.vocab)
    start = now.hidden.detach() if before is None else before
    ids = likeliest(model, start, k, chunk=chunk)

    def of(hidden: torch.Tensor, logprob: torch.Tensor) -> torch.Tensor:
        return candidate_logprobs(
            model, hidden, ids, token=now.tokens, logprob=logprob, temperature=now.temperature
        )

    def frozen(hidden: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            said = score(model, hidden, now.tokens, now.temperature, chunk=chunk).logprob
            return of(hidden, said)

    share = _chosen(model, ids, teacher, now.sizes, config) if _selects(config) else teacher.share
    taught = torch.stack([frozen(states) for states in teacher.hidden])
    mixed = (taught + share.log()[..., None]).logsumexp(0)
    current = of(now.hidden, now.logprob)
    prox = current.detach() if before is None else frozen(before)
    return Candidates(current, prox, mixed)


def _selects(config: StepConfig) -> bool:
    return config.loss.opd_kind == "top_k_select"


def _chosen(
    model: PolicyModel, ids: torch.Tensor, teacher: Teacher, sizes: Sequence[int], config: StepConfig
) -> torch.Tensor:
    """Shares [H, N] that are 1 for each reply's best hint and 0 for the others."""
    present = teacher.share > 0
    k = ids.size(1)
    theirs = torch.stack(
        [likeliest(model, states, k, chunk=config.chunk_tokens) for states in teacher.hidden]
    )
    share = torch.zeros_like(teacher.share)
    start = 0
    for size in sizes:
        reply = slice(start, start + size)
        known = present[:, start].nonzero()[:, 0]
        share[known[best_hint(ids[reply], theirs[known, reply])], reply] = 1.0
        start += size
    return share
