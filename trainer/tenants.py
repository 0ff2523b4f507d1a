"""Steps of many policies at once: one pass of the frozen base over all their tokens,
each under its own adapter.

A few tokens leave the base's linears waiting for its weights, so short batches of many tenants go through
together; long ones gain nothing and go one at a time. Either way each step is its own: its own parent,
shares, bounds, clip, optimiser and files. Nothing that is computed for one depends on who else is there: its
micro-batches are planned alone, attention and adapters see its tokens alone, and a row of a matrix product
does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from trainer.batching import MicroBatch
from trainer.contracts import TOGETHER_AT_MOST, StepReport, StepRequest, shares_a_pass
from trainer.learn import Lot, Tally, token_batch
from trainer.lora.state import Values
from trainer.losses.combined import combined_loss
from trainer.model.head import score
from trainer.model.policy import PolicyModel
from trainer.recorder import Notify, Recorder
from trainer.scoring import Tick
from trainer.signals import shares
from trainer.step import close_step, guarded, load_adapter, open_step, run_step
from trainer.update import Opened


@dataclass(frozen=True, slots=True)
class Member:
    """One policy's part of a pass, and the adapter it runs under."""

    lot: Lot
    values: Values


def run_steps(
    model: PolicyModel, requests: Sequence[StepRequest], notify: Notify = lambda _: None
) -> list[StepReport]:
    """One report for each request, in order: those of `run_step`, for the same requests.

    Never raises for a request's own fault, and one's fault stops no other."""
    reports: dict[int, StepReport] = {}
    # replicas divide a policy's own sequences, so there each goes alone
    alone = model.ranks.replicas > 1
    for group in [[index] for index in range(len(requests))] if alone else grouped(requests):
        if len(group) == 1:
            reports[group[0]] = run_step(model, requests[group[0]], notify)
        else:
            found = _together(model, [requests[index] for index in group], notify)
            reports |= dict(zip(group, found, strict=True))
    return [reports[index] for index in range(len(requests))]


def grouped(requests: Sequence[StepRequest]) -> list[list[int]]:
    """Which requests share a pass, by their place: small, of one shape of adapter, and of a single update."""
    groups: list[list[int]] = []
    open_groups: dict[object, list[int]] = {}
    for index, request in enumerate(requests):
        size = sum(len(sample.prompt_ids) + len(sample.output_ids) for sample in request.samples)
        lora = request.config.lora
        mine = open_groups.get(lora)
        if not shares_a_pass(tokens=size, updates=request.config.updates * request.config.epochs):
            groups.append([index])
        elif mine is not None and len(mine) < TOGETHER_AT_MOST:
            mine.append(index)
        else:
            open_groups[lora] = [index]
            groups.append(open_groups[lora])
    return groups


def accumulate_together(model: PolicyModel, members: Sequence[Member], tick: Tick) -> list[Tally]:
    """Adds the gradient of each member's loss to its own values; one tally for each, in order."""
    tallies = [Tally() for _ in members]
    for chosen in _passes(members):
        batches = [batch for _, batch in chosen]
        states = model.hidden_together([(batch.ids(), members[index].values) for index, batch in chosen])
        picked = []
        for batch, block in zip(batches, states, strict=True):
            rows, positions = batch.places()
            picked.append(block[positions, rows])
        said = _scored(model, [(members[index].lot, batch) for index, batch in chosen], picked)
        losses = []
        for (index, batch), hidden, logprob in zip(chosen, picked, said, strict=True):
            lot = members[index].lot
            tokens = token_batch(model, batch, hidden, lot, logprob=logprob)
            losses.append(combined_loss(tokens, lot.config.loss))
            tallies[index].take(batch, tokens, losses[-1], lot.material)
        torch.stack([loss.total for loss in losses]).sum().backward()
        tick(sum(sum(batch.sizes) for batch in batches))
    return tallies


def _passes(members: Sequence[Member]) -> Iterator[list[tuple[int, MicroBatch]]]:
    """Members' micro-batches, as many at a time as the smallest of their budgets takes."""
    budget = min(member.lot.config.token_budget for member in members)
    chosen: list[tuple[int, MicroBatch]] = []
    size = 0
    for index, member in enumerate(members):
        for batch in member.lot.batches():
            tokens = batch.ids().numel()
            if chosen and size + tokens > budget:
                yield chosen
                chosen, size = [], 0
            chosen.append((index, batch))
            size += tokens
    if chosen:
        yield chosen


def _scored(
    model: PolicyModel, parts: Sequence[tuple[Lot, MicroBatch]], picked: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Log-probabilities of all parts' scored ids:
    the output matrix is read once for all, not once for each."""
    device = model.ranks.device
    heat = [
        lot.material.signals[row.key].temperature
        for lot, batch in parts
        for row in batch.rows
        for _ in range(row.scored)
    ]
    scores = score(
        model,
        torch.cat(list(picked)),
        torch.cat([batch.tokens() for _, batch in parts]).to(device),
        torch.tensor(heat, device=device),
        chunk=max(lot.config.chunk_tokens for lot, _ in parts),
    )
    return list(scores.logprob.split([states.size(0) for states in picked]))


def _together(model: PolicyModel, requests: Sequence[StepRequest], notify: Notify) -> list[StepReport]:
    reports: dict[int, StepReport] = {}
    waiting: dict[int, tuple[Opened, Member]] = {}
    for index, request in enumerate(requests):
        found = _open(model, request, notify)
        if isinstance(found, StepReport):
            reports[index] = found
        else:
            waiting[index] = found
    if waiting:
        runs = [opened.run for opened, _ in waiting.values()]
        total = int(sum(run.metrics["tokens"] for run in runs))
        # the pass is told of as the first one's, and its time is divided among all
        with runs[0].phase("learn", total) as tick:
            tallies = accumulate_together(model, [member for _, member in waiting.values()], tick)
        part = runs[0].seconds["learn"] / len(runs)
        for run in runs:
            run.seconds["learn"] = part
            run.alone = False
        for (index, (opened, member)), tally in zip(waiting.items(), tallies, strict=True):
            reports[index] = _close(model, opened, member, tally)
    return [reports[index] for index in range(len(requests))]


def _open(model: PolicyModel, request: StepRequest, notify: Notify) -> StepReport | tuple[Opened, Member]:
    run = Recorder(request, notify)

    def make() -> StepReport | tuple[Opened, Member]:
        opened = open_step(model, request, run)
        if isinstance(opened, StepReport):
            return opened
        split = shares(run.signals, request.config)
        chosen = {index: split[index] for index, signal in enumerate(run.signals) if signal.parts}
        return opened, Member(Lot(opened.material, chosen, request.config), opened.adapter.take_off())

    return guarded(run, request, make)


def _close(model: PolicyModel, opened: Opened, member: Member, tally: Tally) -> StepReport:
    def gradient(_lot: Lot, _tick: Tick) -> Tally:
        opened.adapter.take_gradient(member.values)
        return tally

    def make() -> StepReport:
        with opened.run.phase("load", 1):
            load_adapter(opened.adapter, opened.request)
        report = close_step(model, opened, gradient)
        member.values.clear()
        return report

    return guarded(opened.run, opened.request, make)
