"""Log-probabilities without a gradient: probes, teachers, the policy as a step begins and after it.

Replicas divide the work; every rank gets all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from trainer.batching import MicroBatch, Row, plan
from trainer.model.head import score
from trainer.model.parallel import merge, mine
from trainer.model.policy import PolicyModel

Tick = Callable[[int], None]
"""Told how many more scored ids are done."""


def hidden_at(model: PolicyModel, batch: MicroBatch) -> torch.Tensor:
    """Hidden states [N, H] that predict a micro-batch's scored ids."""
    rows, positions = batch.places()
    return model.hidden(batch.ids())[positions, rows]


@torch.no_grad()
def logprobs(
    model: PolicyModel,
    rows: Sequence[Row],
    temperatures: Mapping[int, float],
    *,
    budget: int,
    chunk: int,
    tick: Tick = lambda _: None,
) -> dict[int, torch.Tensor]:
    """Log-probabilities [scored] of each row by its key, on the host; keys must differ."""
    found: dict[int, torch.Tensor] = {}
    for batch in mine(plan(rows, budget), model.ranks):
        tokens = batch.tokens().to(model.ranks.device)
        heat = torch.tensor([temperatures[row.key] for row in batch.rows for _ in range(row.scored)])
        scores = score(model, hidden_at(model, batch), tokens, heat.to(tokens.device), chunk=chunk)
        for row, values in zip(batch.rows, scores.logprob.cpu().split(batch.sizes), strict=True):
            found[row.key] = values
            tick(row.scored * model.ranks.replicas)
    return merge(found, model.ranks)


@torch.no_grad()
def hidden_states(
    model: PolicyModel, rows: Sequence[Row], *, budget: int, tick: Tick = lambda _: None
) -> dict[int, torch.Tensor]:
    """Hidden states [scored, H] of each row by its key, where the model is:
    a teacher's whole distribution costs a vocabulary a token, its hidden state a few hundred numbers."""
    found: dict[int, torch.Tensor] = {}
    for batch in mine(plan(rows, budget), model.ranks):
        for row, states in zip(batch.rows, hidden_at(model, batch).split(batch.sizes), strict=True):
            found[row.key] = states.clone() if model.ranks.replicas == 1 else states.cpu()
            tick(row.scored * model.ranks.replicas)
    merged = merge(found, model.ranks)
    return {key: states.to(model.ranks.device) for key, states in merged.items()}


def sequence_logprobs(
    model: PolicyModel,
    sequences: Sequence[tuple[int, ...]],
    *,
    budget: int,
    chunk: int,
    temperature: float = 1.0,
) -> list[tuple[float, ...]]:
    """Of every id but the first of each sequence, nats; an empty tuple for a sequence of one."""
    rows = [Row(index, ids, len(ids) - 1) for index, ids in enumerate(sequences) if len(ids) > 1]
    found = logprobs(
        model, rows, dict.fromkeys(range(len(sequences)), temperature), budget=budget, chunk=chunk
    )
    return [
        tuple(min(v, 0.0) for v in found[i].tolist()) if i in found else () for i in range(len(sequences))
    ]
