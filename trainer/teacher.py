"""What the hinted teacher says of the student's own tokens, on the trainer's own weights."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch

from trainer.batching import Row
from trainer.contracts import StepConfig
from trainer.losses.distill import mixture_logprob
from trainer.model.policy import PolicyModel
from trainer.scoring import Tick, hidden_states, logprobs
from trainer.signals import Signal


@dataclass(frozen=True, slots=True)
class Lesson:
    """For one sample: `logprob` [tokens] for sampled distillation, or `hidden` [K,
    tokens, H] for the others."""

    logprob: torch.Tensor | None
    hidden: torch.Tensor | None


def lessons(
    model: PolicyModel, signals: Sequence[Signal], config: StepConfig, tick: Tick
) -> dict[int, Lesson]:
    """By the signal's index; only for samples that are distilled. One forward for each hinted prompt."""
    rows: list[Row] = []
    owner: list[int] = []
    for index, signal in enumerate(signals):
        for prompt in signal.teachers:
            output = signal.sample.output_ids
            rows.append(Row(len(rows), prompt + output, len(output)))
            owner.append(index)
    with model.bare() if config.loss.opd_teacher == "base" else nullcontext():
        if config.loss.opd_kind != "sampled":
            by_row = hidden_states(model, rows, budget=config.token_budget, tick=tick)
        else:
            heat = {row.key: signals[owner[row.key]].temperature for row in rows}
            by_row = logprobs(
                model, rows, heat, budget=config.token_budget, chunk=config.chunk_tokens, tick=tick
            )
    found: dict[int, list[torch.Tensor]] = {}
    for key, index in enumerate(owner):
        found.setdefault(index, []).append(by_row[key])
    if config.loss.opd_kind != "sampled":
        return {index: Lesson(None, torch.stack(several)) for index, several in found.items()}
    return {index: Lesson(mixture_logprob(torch.stack(several)), None) for index, several in found.items()}
