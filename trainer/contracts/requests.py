"""What the child is asked: lines on its standard input."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from trainer.codec import Bounds, Contract, ContractError
from trainer.contracts.config import LoraSpec, StepConfig
from trainer.contracts.types import Ids, Logprob, Name, Sha256


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
    """Engine's log-probability of each reply token at the sampled temperature,
    nats; None: never in a ratio."""
    temperature: Annotated[float, Bounds(0, 10)] = 1.0
    """What the reply was sampled with; 0 is greedy: never in a ratio, distilled at temperature 1."""
    exact_sampling: bool = True
    """False where top_p, top_k, min_p or penalties shaped the sampling:
    never in a ratio, may be distilled."""
    reward: Annotated[float, Bounds(-1e3, 1e3)] | None = None
    """Scalar reward of the reply, dimensionless (binary: -1, 0 or 1); None: no verdict.

    Of an environment's turn, the process reward."""
    outcome: Annotated[float, Bounds(-1e3, 1e3)] | None = None
    """Reward of the whole rollout that the turn belongs to, added to each of its turns' own; None: none."""
    group: Annotated[str, Bounds(0, 4096)] = ""
    """Rollouts of one task carry the same word and are compared with each other; empty: not a rollout."""
    step: Annotated[int, Bounds(0, 1_000_000)] = 0
    """Which of its rollout's turns it is, from 0."""
    hint_prompt_ids: Annotated[tuple[Ids, ...], Bounds(0, 3)] = ()
    """Whole prompts, each with one hint in it, best first, tokens; the first alone teaches unless
    `LossConfig.hints` says more. Empty: nothing to distil."""
    truncated: bool = False
    """The reply was cut by the length limit: its reward is ignored, its tokens may be distilled."""
    staleness: Annotated[int, Bounds(0, 1_000_000)] = 0
    """Steps along the lineage from the version of the reply's first token to the parent of this step."""
    weight: Annotated[float, Bounds(1e-6, 1)] = 1.0
    """How much it counts in every part of the loss; the denominators stay what they are."""

    @property
    def total_reward(self) -> float | None:
        """Outcome plus process reward; None without either."""
        if self.reward is None and self.outcome is None:
            return None
        return (self.reward or 0.0) + (self.outcome or 0.0)

    def rules(self) -> None:
        if self.output_logprobs is not None and len(self.output_logprobs) != len(self.output_ids):
            raise ContractError(
                f"SampleInput.output_logprobs: {len(self.output_logprobs)} values for {len(self.output_ids)} tokens"
            )


@dataclass(frozen=True, slots=True)
class BaselineState(Contract):
    """A policy's reward baseline; travels with requests and comes back updated in every report."""

    mean: Annotated[float, Bounds(-2e3, 2e3)] | None = None
    """Moving average of the policy's rewards, outcome plus process reward; None before the first."""
    count: Annotated[float, Bounds(0, 1e6)] = 0.0
    """Effective number of rewards in `mean` (saturates at 1 / (1 - decay))."""
    prior_mean: Annotated[float, Bounds(-2e3, 2e3)] | None = None
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
    """Sequences whose log-probabilities are stored with the version,
    so that an engine can be asked for the same."""
    base_model: Annotated[str, Bounds(0, 4096)] = ""
    """Name of the base in the artefact's files; empty: the model directory's name."""
    dry_run: bool = False
    """Report losses, drift and the gradient's norm as a step would, without making it or writing anything."""
    kind: Literal["step"] = "step"
    """Says what the line is."""


TOGETHER_BELOW = 128
"""Tokens of one policy's batch from which it goes alone: measured, see docs/decisions/many-tenants.md."""
TOGETHER_AT_MOST = 4
"""Policies in one pass: each costs its activations, values and gradients until its optimiser has stepped."""


def shares_a_pass(*, tokens: int, updates: int) -> bool:
    """Whether a batch of so many tokens, prompts and replies, is faster together with others than alone."""
    return tokens <= TOGETHER_BELOW and updates == 1


@dataclass(frozen=True, slots=True)
class StepsRequest(Contract):
    """Make one step of each of several policies; small ones share a pass.

    Answered by one report for each, in order, under the run ids of the steps."""

    run_id: Name
    """Comes back only where the whole line is in error."""
    steps: Annotated[tuple[StepRequest, ...], Bounds(1, 4096)]
    """What to do; no two write to the same directory."""
    kind: Literal["steps"] = "steps"
    """Says what the line is."""

    def rules(self) -> None:
        if len({step.out_dir for step in self.steps}) < len(self.steps):
            raise ContractError("StepsRequest.steps: two steps write to the same directory")


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
