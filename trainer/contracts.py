"""What the trainer is told and what it answers. No torch: whoever speaks to the trainer imports only this.

Lines on the child's standard input are `StepRequest`, `InitRequest`, `ScoreRequest` or `Ping`; lines on its
standard output are `Ready`, `Pong`, `ProgressEvent`, `StepReport`, `ScoreReport` or `ErrorLine`. Each has a
`kind`. Every log-probability is in nats; every length in tokens; every duration in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from trainer.codec import Bounds, Contract, ContractError

TARGET_MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""What the adapter always covers, in PEFT's names: engines are started with exactly these."""

TokenId = Annotated[int, Bounds(0, 2**31 - 1)]
Ids = Annotated[tuple[TokenId, ...], Bounds(1, 1_048_576)]
Logprob = Annotated[float, Bounds(-1e4, 1e-3)]
Name = Annotated[str, Bounds(1, 4096)]
Sha256 = Annotated[str, Bounds(64, 64)]
Fraction = Annotated[float, Bounds(0, 1)]
Seconds = Annotated[float, Bounds(0, 1e9)]

Outcome = Literal["made", "no_op", "skipped", "refused", "failed"]
"""made: a version was written. no_op: nothing to learn or lr 0. skipped: too off-policy (ESS). refused: a bound
was passed (not finite, norm, KL); the samples deserve a look. failed: the surroundings (disk, parent's files);
the same request may be tried again. Only `made` leaves anything on the disk."""


Part = Literal["rl", "opd"]
"""rl: the reward part of the loss. opd: the distillation of the hinted teacher."""


@dataclass(frozen=True, slots=True)
class SampleInput(Contract):
    """One reply to learn from: one turn, with the exact ids that the engine saw and gave."""

    sample_id: Name
    """Whoever sent it knows it by this; it comes back in `SampleOutcome`."""
    prompt_ids: Ids
    """The prompt as the engine saw it, tokens."""
    output_ids: Ids
    """The reply as the engine gave it, end-of-turn token included where the model sampled it, tokens."""
    output_logprobs: tuple[Logprob, ...] | None = None
    """Engine's log-probability of each reply token at the sampled temperature, nats; None: never in a ratio."""
    temperature: Annotated[float, Bounds(0, 10)] = 1.0
    """What the reply was sampled with; 0 is greedy: never in a ratio, distilled at temperature 1."""
    exact_sampling: bool = True
    """False where top_p, top_k, min_p or penalties shaped the sampling: never in a ratio, may be distilled."""
    reward: Annotated[float, Bounds(-1e3, 1e3)] | None = None
    """Scalar reward of the reply, dimensionless (binary: -1, 0 or 1); None: no verdict."""
    hint_prompt_ids: Annotated[tuple[Ids, ...], Bounds(0, 3)] = ()
    """Whole prompts, each with one hint in it, best first, tokens; the first alone teaches unless
    `LossConfig.hints` says more. Empty: nothing to distil."""
    truncated: bool = False
    """The reply was cut by the length limit: its reward is ignored, its tokens may be distilled."""
    staleness: Annotated[int, Bounds(0, 1_000_000)] = 0
    """Steps along the lineage from the version of the reply's first token to the parent of this step."""

    def rules(self) -> None:
        if self.output_logprobs is not None and len(self.output_logprobs) != len(self.output_ids):
            raise ContractError(
                f"SampleInput.output_logprobs: {len(self.output_logprobs)} values for {len(self.output_ids)} tokens"
            )


@dataclass(frozen=True, slots=True)
class LoraSpec(Contract):
    """Shape of an adapter; the same for a policy's whole lineage."""

    rank: Annotated[int, Bounds(1, 512)] = 16
    """Rank of every pair of matrices."""
    alpha: Annotated[float, Bounds(1e-3, 4096)] = 32.0
    """Scale times rank: the adapter's output is multiplied by alpha / rank."""


@dataclass(frozen=True, slots=True)
class LossConfig(Contract):
    """What is minimised: `rl_weight` x policy loss + `opd_weight` x distillation + `kl_weight` x KL to the base."""

    rl_weight: Annotated[float, Bounds(0, 100)] = 1.0
    """Weight of the reward part, dimensionless; 0 leaves it out."""
    opd_weight: Annotated[float, Bounds(0, 100)] = 1.0
    """Weight of the distillation part, dimensionless; 0 leaves it out."""
    kl_weight: Annotated[float, Bounds(0, 100)] = 0.0
    """Weight of k3(policy, bare base) on every reply token, dimensionless; 0 leaves it out."""
    policy_form: Literal["decoupled", "doubly_clipped", "plain"] = "decoupled"
    """How ratios enter: w = prox/behaviour apart, w clipped to [1-eps, 1+eps] as well, or prox = behaviour."""
    aggregation: Literal["token", "sequence"] = "token"
    """Mean over the batch's tokens, or over its replies of each reply's mean."""
    clip_low: Annotated[float, Bounds(0, 1)] = 0.2
    """eps: the ratio is clipped below at 1 - eps."""
    clip_high: Annotated[float, Bounds(0, 10)] = 0.28
    """eps_hi: the ratio is clipped above at 1 + eps_hi."""
    dual_clip: Annotated[float, Bounds(1, 100)] | None = 3.0
    """c: with a negative advantage the objective is never below c x advantage; None: no such floor."""
    behaviour_cap: Literal["mask", "truncate"] = "mask"
    """What happens to a token whose w = prox/behaviour is large."""
    behaviour_mask_above: Annotated[float, Bounds(1, 1e6)] = 5.0
    """`mask`: tokens with w above this are left out of the numerator."""
    behaviour_truncate_at: Annotated[float, Bounds(1, 1e6)] = 2.0
    """`truncate`: w is at most this."""
    opd_kind: Literal["sampled", "full_kl"] = "sampled"
    """Distil on sampled tokens (teacher minus student as advantage) or by the whole-vocabulary reverse KL."""
    opd_teacher: Literal["base", "policy"] = "base"
    """Who reads the hint: the frozen base, or the policy as it was when the step began."""
    opd_clip: Annotated[float, Bounds(1e-3, 20)] = 1.0
    """C: a token's distillation advantage is clipped to [-C, C], nats (`sampled` only)."""
    hints: Annotated[int, Bounds(1, 3)] = 1
    """Teachers of a reply, from the front of `hint_prompt_ids`; with several, their log-probabilities (`sampled`)
    or probabilities (`full_kl`) are averaged."""


@dataclass(frozen=True, slots=True)
class StepConfig(Contract):
    """Everything that shapes one step besides the samples."""

    loss: LossConfig = field(default_factory=LossConfig)
    """What is minimised."""
    lora: LoraSpec = field(default_factory=LoraSpec)
    """Shape of the adapter; must equal the parent's."""
    lr: Annotated[float, Bounds(0, 1)] = 1e-4
    """AdamW's learning rate; 0 is a no-op by definition."""
    beta1: Annotated[float, Bounds(0, 0.9999)] = 0.9
    """AdamW's decay of the first moment."""
    beta2: Annotated[float, Bounds(0, 0.99999)] = 0.999
    """AdamW's decay of the second moment."""
    adam_eps: Annotated[float, Bounds(1e-12, 1e-2)] = 1e-8
    """AdamW's epsilon."""
    weight_decay: Annotated[float, Bounds(0, 1)] = 0.0
    """AdamW's decoupled weight decay."""
    grad_clip: Annotated[float, Bounds(1e-6, 1e6)] = 1.0
    """The gradient's global norm is clipped to this."""
    max_grad_norm: Annotated[float, Bounds(1e-6, 1e12)] = 1e4
    """A norm above this before clipping refuses the step."""
    updates: Annotated[int, Bounds(1, 64)] = 1
    """Optimiser steps in the one pass over the samples; above 1 the ratios to prox leave 1."""
    min_ess: Fraction = 0.3
    """Effective sample size of the behaviour weights, as a fraction of the tokens, under which a step is skipped."""
    max_rollout_k3: Annotated[float, Bounds(0, 1e9)] = 10.0
    """Mean k3(behaviour, prox), nats, above which the step is refused: the rollouts are not this policy's."""
    max_step_k3: Annotated[float, Bounds(0, 1e9)] = 10.0
    """Mean k3(prox, policy after the step), nats, on the check tokens, above which the step is refused."""
    check_tokens: Annotated[int, Bounds(0, 1_000_000)] = 256
    """Reply tokens scored again after the step, to see how far it went; 0: only the probes are looked at."""
    token_budget: Annotated[int, Bounds(16, 10_000_000)] = 4096
    """Padded tokens in one micro-batch; a longer sequence goes alone."""
    chunk_tokens: Annotated[int, Bounds(1, 65_536)] = 128
    """Tokens whose logits over the whole vocabulary exist at once."""
    baseline_decay: Annotated[float, Bounds(0, 0.9999)] = 0.9
    """Decay of the reward baseline's moving average, per sample."""
    baseline_prior_weight: Annotated[float, Bounds(0, 1e6)] = 4.0
    """How many samples the population's mean weighs in the policy's baseline."""


@dataclass(frozen=True, slots=True)
class BaselineState(Contract):
    """A policy's reward baseline; travels with requests and comes back updated in every report."""

    mean: Annotated[float, Bounds(-1e3, 1e3)] | None = None
    """Moving average of the policy's rewards; None before the first."""
    count: Annotated[float, Bounds(0, 1e6)] = 0.0
    """Effective number of rewards in `mean` (saturates at 1 / (1 - decay))."""
    prior_mean: Annotated[float, Bounds(-1e3, 1e3)] | None = None
    """Mean reward of the population of policies; None where it is not known."""


@dataclass(frozen=True, slots=True)
class StepRequest(Contract):
    """Make one step of one policy."""

    run_id: Name
    """Comes back in every event and report of this run."""
    out_dir: Name
    """Final directory of the artefact; must not exist. Written beside it first, then renamed."""
    samples: Annotated[tuple[SampleInput, ...], Bounds(0, 65_536)]
    """The batch."""
    config: StepConfig = field(default_factory=StepConfig)
    """How to learn."""
    parent_dir: Name | None = None
    """Artefact to start from; None: the bare base with a fresh adapter."""
    parent_hash: Sha256 | None = None
    """What the parent's version hash must be; None: whatever its manifest says."""
    baseline: BaselineState = field(default_factory=BaselineState)
    """Reward baseline before this batch."""
    seed: Annotated[int, Bounds(0, 2**63 - 1)] = 0
    """Initialises a fresh adapter and orders the batch; the same request gives the same bytes."""
    probe_ids: Annotated[tuple[Ids, ...], Bounds(0, 64)] = ()
    """Sequences whose log-probabilities are stored with the version, so that an engine can be asked for the same."""
    base_model: Annotated[str, Bounds(0, 4096)] = ""
    """Name of the base in the artefact's files; empty: the model directory's name."""
    kind: Literal["step"] = "step"
    """Says what the line is."""


@dataclass(frozen=True, slots=True)
class InitRequest(Contract):
    """Write a fresh adapter (B = 0, so the bare base) with an empty optimiser state."""

    run_id: Name
    """Comes back in the report."""
    out_dir: Name
    """Final directory of the artefact; must not exist."""
    lora: LoraSpec = field(default_factory=LoraSpec)
    """Shape of the adapter."""
    seed: Annotated[int, Bounds(0, 2**63 - 1)] = 0
    """Initialises A."""
    probe_ids: Annotated[tuple[Ids, ...], Bounds(0, 64)] = ()
    """As in `StepRequest`."""
    base_model: Annotated[str, Bounds(0, 4096)] = ""
    """As in `StepRequest`."""
    kind: Literal["init"] = "init"
    """Says what the line is."""


@dataclass(frozen=True, slots=True)
class ScoreRequest(Contract):
    """Teacher-forced log-probabilities of whole sequences, with an adapter or without."""

    run_id: Name
    """Comes back in the report."""
    sequences: Annotated[tuple[Ids, ...], Bounds(1, 4096)]
    """What to score, tokens."""
    adapter_dir: Name | None = None
    """Artefact to score with; None: the bare base."""
    temperature: Annotated[float, Bounds(1e-3, 10)] = 1.0
    """Logits are divided by this first."""
    token_budget: Annotated[int, Bounds(16, 10_000_000)] = 4096
    """As in `StepConfig`."""
    kind: Literal["score"] = "score"
    """Says what the line is."""


@dataclass(frozen=True, slots=True)
class Ping(Contract):
    """Asks whether the child is there and idle."""

    run_id: Annotated[str, Bounds(0, 4096)] = ""
    """Comes back in the answer."""
    kind: Literal["ping"] = "ping"
    """Says what the line is."""


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
    """Version hash: SHA-256 of the bytes of adapter_model.safetensors followed by those of adapter_config.json."""
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
    """Machine's word for it: ok, lr_zero, no_signal, low_ess, not_finite, grad_norm, rollout_kl, step_kl, no_space,
    io_error, bad_parent, out_dir_exists."""
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
    """Processes that hold it."""
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
