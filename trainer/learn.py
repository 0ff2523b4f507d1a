"""The pass that makes the gradient: forward, losses and backward, a micro-batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from trainer.batching import MicroBatch, Row, plan
from trainer.contracts import StepConfig
from trainer.lora.layers import AdapterPair
from trainer.losses.combined import Candidates, CombinedLoss, TokenBatch, combined_loss
from trainer.losses.topk import top_k_kl
from trainer.model.head import Scores, Teacher, score
from trainer.model.parallel import add_over_replicas, merge, mine
from trainer.model.policy import PolicyModel
from trainer.pull import Place, candidates
from trainer.scoring import Tick, hidden_at
from trainer.signals import Shares, Signal
from trainer.teacher import Lesson


@dataclass(frozen=True, slots=True)
class SampleTokens:
    """What was seen of one sample's reply tokens [tokens], on the host, float32."""

    prox: torch.Tensor
    behaviour: torch.Tensor | None
    teacher: torch.Tensor | None
    teacher_kl: torch.Tensor | None
    kept: torch.Tensor
    clipped: torch.Tensor


@dataclass(frozen=True, slots=True)
class Losses:
    """Of a whole batch; the parts before their weights."""

    total: float
    rl: float
    opd: float
    kl: float


@dataclass(frozen=True, slots=True)
class Material:
    """What the pass works on; dictionaries by the signal's index."""

    signals: Sequence[Signal]
    lessons: Mapping[int, Lesson]
    base: Mapping[int, torch.Tensor]
    """Log-probabilities of the bare base, where the KL to it has a weight."""
    prox: Mapping[int, torch.Tensor]
    """Of the policy as the step began; empty with a single update,
    where it is what the pass itself computes."""
    prox_hidden: Mapping[int, torch.Tensor] = field(default_factory=dict)
    """Its hidden states, where top-k distillation asks for more than the sampled tokens; empty likewise."""


@dataclass(frozen=True, slots=True)
class Lot:
    """One policy's part of a pass: which samples, by the signal's index with their shares, and how."""

    material: Material
    chosen: Mapping[int, Shares]
    config: StepConfig

    def batches(self) -> list[MicroBatch]:
        """Its micro-batches; they depend on nothing but the lot itself."""
        rows = [student_row(index, self.material.signals[index]) for index in self.chosen]
        return plan(rows, self.config.token_budget, share_prefixes=self.config.share_prefixes)


@dataclass(slots=True)
class Tally:
    """What a pass has seen so far."""

    sums: torch.Tensor = field(default_factory=lambda: torch.zeros(4, dtype=torch.float64))
    seen: dict[int, SampleTokens] = field(default_factory=dict)

    def take(self, batch: MicroBatch, tokens: TokenBatch, loss: CombinedLoss, material: Material) -> None:
        """Adds one micro-batch."""
        self.sums += torch.stack([loss.total.detach(), loss.rl, loss.opd, loss.kl]).double().cpu()
        columns = zip(
            *(
                column.detach().cpu().split(batch.sizes)
                for column in (tokens.prox, tokens.behaviour, loss.kept, loss.clipped)
            ),
            strict=True,
        )
        gap = _gap(tokens)
        kls = [None] * len(batch.rows) if gap is None else gap.detach().cpu().split(batch.sizes)
        for row, (prox, behaviour, kept, clipped), kl in zip(batch.rows, columns, kls, strict=True):
            lesson = material.lessons.get(row.key)
            self.seen[row.key] = SampleTokens(
                prox=prox,
                behaviour=behaviour if material.signals[row.key].in_ratio else None,
                teacher=lesson.logprob.cpu() if lesson and lesson.logprob is not None else None,
                teacher_kl=kl if lesson else None,
                kept=kept,
                clipped=clipped,
            )

    @property
    def losses(self) -> Losses:
        """Sums over the micro-batches."""
        return Losses(*self.sums.tolist())


def student_row(index: int, signal: Signal) -> Row:
    """The sequence that the engine saw and wrote."""
    output = signal.sample.output_ids
    return Row(index, signal.sample.prompt_ids + output, len(output))


def accumulate(model: PolicyModel, lot: Lot, pairs: Iterable[AdapterPair], tick: Tick) -> Tally:
    """Adds the gradient of the loss over the lot's samples to the adapter's parameters, `pairs`.

    Replicas take a part of the micro-batches each; gradient and tally are those of all of them.
    """
    tally = Tally()
    for batch in mine(lot.batches(), model.ranks):
        tokens = token_batch(model, batch, hidden_at(model, batch), lot)
        loss = combined_loss(tokens, lot.config.loss)
        loss.total.backward()
        tally.take(batch, tokens, loss, lot.material)
        tick(sum(batch.sizes) * model.ranks.replicas)
    if model.ranks.replicas == 1:
        return tally
    parameters = [parameter for pair in pairs for parameter in (pair.a, pair.b)]
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    add_over_replicas([parameter.grad for parameter in parameters if parameter.grad is not None], model.ranks)
    parts = merge({model.ranks.replica: tally.sums}, model.ranks)
    return Tally(
        torch.stack([parts[replica] for replica in sorted(parts)]).sum(0), merge(tally.seen, model.ranks)
    )


def _gap(tokens: TokenBatch) -> torch.Tensor | None:
    """How far the teacher is [N], nats, where it is known beyond the sampled token."""
    few: Candidates | None = tokens.candidates
    return tokens.teacher_kl if few is None else top_k_kl(few.logprob.detach(), few.teacher)


def token_batch(
    model: PolicyModel,
    batch: MicroBatch,
    hidden: torch.Tensor,
    lot: Lot,
    *,
    logprob: torch.Tensor | None = None,
) -> TokenBatch:
    """What the losses work on, from the states hidden [N, H] that predict the batch's scored ids.

    `logprob` [N]: their log-probabilities where they are known already; otherwise they are computed here.
    """
    device = model.ranks.device
    material, config = lot.material, lot.config
    signals = [material.signals[row.key] for row in batch.rows]

    def spread(values: Sequence[float]) -> torch.Tensor:
        sizes = torch.tensor(batch.sizes)
        return torch.tensor(list(values), dtype=torch.float32).repeat_interleave(sizes).to(device)

    def joined(found: Mapping[int, torch.Tensor], otherwise: torch.Tensor) -> torch.Tensor:
        parts = otherwise.split(batch.sizes)
        rows = zip(batch.rows, parts, strict=True)
        return torch.cat([found[row.key].to(device) if row.key in found else part for row, part in rows])

    tokens = batch.tokens().to(device)
    heat = spread([signal.temperature for signal in signals])
    teacher = _full_teacher(model, batch, material)
    whole = teacher if config.loss.opd_kind == "full_kl" else None
    scores = (
        Scores(logprob, None)
        if logprob is not None and whole is None
        else score(model, hidden, tokens, heat, chunk=config.chunk_tokens, teacher=whole)
    )
    teacher_kl, few = scores.kl, None
    if teacher is not None and whole is None:
        place = Place(hidden, tokens, scores.logprob, heat, batch.sizes)
        few = candidates(model, place, _before(batch, material), teacher, config)
        if config.loss.opd_kind == "top_k":
            teacher_kl, few = top_k_kl(few.logprob, few.teacher), None
    current = scores.logprob.detach()
    prox = joined(material.prox, current)
    engine = {
        row.key: torch.tensor(signal.sample.output_logprobs, dtype=torch.float32)
        for row, signal in zip(batch.rows, signals, strict=True)
        if signal.in_ratio
    }
    taught = {row.key: material.lessons[row.key] for row in batch.rows if row.key in material.lessons}
    said = {key: lesson.logprob for key, lesson in taught.items() if lesson.logprob is not None}
    share = [lot.chosen[row.key] for row in batch.rows]
    return TokenBatch(
        logprob=scores.logprob,
        prox=prox,
        behaviour=joined(engine, prox),
        advantage=spread([signal.advantage for signal in signals]),
        rl_share=spread([one.rl for one in share]),
        opd_share=spread([one.opd for one in share]),
        kl_share=spread([one.kl for one in share]),
        teacher=joined(said, prox) if said else None,
        teacher_kl=teacher_kl,
        base=joined(material.base, prox) if material.base else None,
        sizes=tuple(batch.sizes),
        candidates=few,
        toward=None
        if config.loss.prox == "recomputed"
        else spread([1 / s.sample.staleness if s.sample.staleness else 0.0 for s in signals]),
    )


def _before(batch: MicroBatch, material: Material) -> torch.Tensor | None:
    if not material.prox_hidden:
        return None
    return torch.cat([material.prox_hidden[row.key] for row in batch.rows])


def _full_teacher(model: PolicyModel, batch: MicroBatch, material: Material) -> Teacher | None:
    """The micro-batch's teachers side by side;
    a sample without one gets an even distribution, and no share."""
    hidden = {
        row.key: lesson.hidden
        for row in batch.rows
        if (lesson := material.lessons.get(row.key)) and lesson.hidden is not None
    }
    if not hidden:
        return None
    most = max(states.size(0) for states in hidden.values())
    size = sum(batch.sizes)
    example = next(iter(hidden.values()))
    states = example.new_zeros(most, size, example.size(2))
    share = torch.zeros(most, size, device=model.ranks.device)
    share[0] = 1.0
    start = 0
    for row in batch.rows:
        if row.key in hidden:
            count = hidden[row.key].size(0)
            states[:count, start : start + row.scored] = hidden[row.key]
            share[:count, start : start + row.scored] = 1.0 / count
        start += row.scored
    return Teacher(states, share)
