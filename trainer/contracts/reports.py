"""What the child answers: lines on its standard output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from trainer.codec import Bounds, Contract, ContractError
from trainer.contracts.requests import BaselineState
from trainer.contracts.types import Fraction, Ids, Logprob, Name, Outcome, Part, Seconds, Sha256


@dataclass(frozen=True, slots=True)
class SampleOutcome(Contract):
    """What became of one sample."""

    sample_id: Name
    """As it was sent."""
    parts: tuple[Part, ...]
    """Losses it took part in; empty: none, and `reason` says why."""
    reason: str = ""
    """Why a part was left out, in words; several joined by "; "."""
    tokens: Annotated[int, Bounds(0, 1_048_576)] = 0
    """Reply tokens that took part."""
    advantage: float | None = None
    """Reward minus baseline; None without the reward part."""
    opd_advantage: float | None = None
    """Mean teacher minus student log-probability before clipping, nats; None without a teacher."""
    masked: Fraction = 0.0
    """Fraction of the reply's tokens left out by the behaviour weight's mask."""
    logprob_abs_diff: Annotated[float, Bounds(0, 1e4)] | None = None
    """Mean |engine - learner| log-probability of its tokens, nats; None without engine log-probabilities."""


@dataclass(frozen=True, slots=True)
class Probe(Contract):
    """What a sequence scores, at temperature 1, in the trainer's arithmetic (float32 results)."""

    ids: Ids
    """The sequence, tokens."""
    logprobs: tuple[Logprob, ...]
    """log p(ids[t+1] | ids[:t+1]) with the adapter, nats: one fewer than `ids`."""
    base_logprobs: tuple[Logprob, ...]
    """The same of the bare base."""


@dataclass(frozen=True, slots=True)
class Artefact(Contract):
    """An adapter version on the disk, whole and fsynced."""

    dir: Name
    """Where it lies."""
    hash: Sha256
    """Version hash: SHA-256 of the bytes of adapter_model.safetensors followed by
    those of adapter_config.json."""
    files: dict[str, Sha256]
    """SHA-256 of each file, manifest.json left out."""
    bytes: Annotated[int, Bounds(0, 2**50)]
    """Size of all its files."""
    step: Annotated[int, Bounds(0, 10**9)]
    """Optimiser steps along its lineage, this one included."""
    parent_hash: Sha256 | None
    """Version hash of what it was made from; None: from the bare base."""
    probe: tuple[Probe, ...] = ()
    """As asked for in the request."""


@dataclass(frozen=True, slots=True)
class StepReport(Contract):
    """How a step (or an init) ended."""

    run_id: Name
    """As in the request."""
    outcome: Outcome
    """See `Outcome`."""
    code: str
    """Machine's word for it: ok, lr_zero, dry_run, no_signal, low_ess, not_finite, grad_norm,
    rollout_kl, step_kl, no_space, io_error, bad_parent, out_dir_exists."""
    reason: str
    """The same in a sentence for a person."""
    metrics: dict[str, float]
    """Named numbers; see `trainer/metrics.py`. Only finite ones."""
    samples: tuple[SampleOutcome, ...]
    """One for each sample of the request, in its order."""
    baseline: BaselineState
    """Reward baseline after this batch; as it was unless the outcome is made or no_op."""
    staleness: dict[str, int]
    """Samples by staleness ("0", "1", ...)."""
    seconds: dict[str, Seconds]
    """Time by phase: load, teacher, learn, check, write; and total."""
    artefact: Artefact | None = None
    """What was written; only with `made`."""
    kind: Literal["report"] = "report"
    """Says what the line is."""

    def rules(self) -> None:
        if (self.outcome == "made") != (self.artefact is not None):
            raise ContractError("StepReport: an artefact exactly where the outcome is made")


@dataclass(frozen=True, slots=True)
class ScoreReport(Contract):
    """Answer to `ScoreRequest`."""

    run_id: Name
    """As in the request."""
    logprobs: tuple[tuple[Logprob, ...], ...]
    """For each sequence, one fewer than its ids, nats."""
    kind: Literal["scores"] = "scores"
    """Says what the line is."""


@dataclass(frozen=True, slots=True)
class ProgressEvent(Contract):
    """A step is under way."""

    run_id: Name
    """As in the request."""
    phase: Literal["load", "teacher", "prox", "learn", "check", "write"]
    """What it is doing."""
    done: Annotated[int, Bounds(0, 10**9)]
    """Reply tokens (or files, when writing) done in this phase."""
    total: Annotated[int, Bounds(0, 10**9)]
    """Out of how many."""
    seconds: Seconds
    """Since the request was read."""
    kind: Literal["progress"] = "progress"
    """Says what the line is."""


@dataclass(frozen=True, slots=True)
class Ready(Contract):
    """First line of the child: the base is in memory."""

    model: Name
    """Directory of the base."""
    device: Name
    """Where it is: cpu or cuda:N."""
    dtype: Name
    """float32 or bfloat16."""
    ranks: Annotated[int, Bounds(1, 65_536)]
    """Processes: tensor-parallel ranks times replicas."""
    vocab_size: Annotated[int, Bounds(1, 2**31 - 1)]
    """Token ids are below this."""
    max_tokens: Annotated[int, Bounds(1, 2**31 - 1)]
    """Longest sequence."""
    parameters: Annotated[int, Bounds(1, 2**60)]
    """Weights of the base."""
    kind: Literal["ready"] = "ready"
    """Says what the line is."""


@dataclass(frozen=True, slots=True)
class Pong(Contract):
    """Answer to `Ping`."""

    run_id: str = ""
    """As in the request."""
    kind: Literal["pong"] = "pong"
    """Says what the line is."""


@dataclass(frozen=True, slots=True)
class ErrorLine(Contract):
    """A line could not be carried out at all; the child lives on."""

    code: Literal["bad_request", "internal"]
    """bad_request: the line breaks the contract. internal: a fault of the trainer; the log has the trace."""
    message: str
    """What was wrong, in one line."""
    run_id: str = ""
    """As in the request, where it could be read."""
    kind: Literal["error"] = "error"
    """Says what the line is."""
