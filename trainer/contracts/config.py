"""How a step learns: every knob with its meaning, unit and bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from trainer.codec import Bounds, Contract
from trainer.contracts.types import Fraction

TARGET_MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""What the adapter always covers, in PEFT's names: engines are started with exactly these."""


@dataclass(frozen=True, slots=True)
class LoraSpec(Contract):
    """Shape of an adapter; the same for a policy's whole lineage."""

    rank: Annotated[int, Bounds(1, 512)] = 16
    """Rank of every pair of matrices."""
    alpha: Annotated[float, Bounds(1e-3, 4096)] = 32.0
    """Scale times rank: the adapter's output is multiplied by alpha / rank."""


@dataclass(frozen=True, slots=True)
class LossConfig(Contract):
    """What is minimised: `rl_weight` x policy loss + `opd_weight` x distillation +
    `kl_weight` x KL to the base."""

    rl_weight: Annotated[float, Bounds(0, 100)] = 1.0
    """Weight of the reward part, dimensionless; 0 leaves it out."""
    opd_weight: Annotated[float, Bounds(0, 100)] = 1.0
    """Weight of the distillation part, dimensionless; 0 leaves it out."""
    kl_weight: Annotated[float, Bounds(0, 100)] = 0.0
    """Weight of the KL to the bare base on every reply token, dimensionless; 0 leaves it out."""
    kl_kind: Literal["k1", "k2", "k3"] = "k3"
    """How that KL is estimated from a sampled token; see `trainer/losses/kl.py`."""
    policy_form: Literal["decoupled", "doubly_clipped", "plain", "gspo", "cispo"] = "decoupled"
    """How ratios enter: w = prox/behaviour apart, w clipped to [1-eps, 1+eps] as well,
    or prox = behaviour (plain); one ratio to behaviour for a reply (gspo);
    the clipped ratio to behaviour as a weight alone (cispo)."""
    prox: Literal["recomputed", "interpolated"] = "recomputed"
    """What ratios of the forms with a prox are taken to:
    the policy as the step began, or, log-linearly, a point between it and the policy that sampled: by 1 /
    staleness toward the latter, not at all where it is 0 (A-3PO, arXiv
    2512.06547)."""
    aggregation: Literal["token", "sequence", "constant"] = "token"
    """Mean over the batch's tokens that take part in any loss (DAPO),
    over its replies of each reply's mean (GRPO), or sum over tokens divided by replies x `constant_tokens`
    (Dr. GRPO): no reply weighs more for being short."""
    constant_tokens: Annotated[int, Bounds(1, 1_048_576)] = 1024
    """`constant`: what every reply's length is taken to be, tokens;
    usually the longest that may be sampled."""
    opsm_delta: Annotated[float, Bounds(0, 100)] | None = None
    """A reply with a negative advantage whose mean log(behaviour / policy) is over this,
    nats a token, is left out."""
    geometric_guard: Literal["metric", "mask"] = "metric"
    """Replies whose exp(mean log(prox / behaviour)) leaves the band are counted only,
    or left out of ratio losses."""
    geometric_low: Annotated[float, Bounds(0, 1)] = 0.99
    """Lower end of the band."""
    geometric_high: Annotated[float, Bounds(1, 100)] = 1.01
    """Upper end of the band."""
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
    opd_kind: Literal["sampled", "full_kl", "top_k", "top_k_select"] = "sampled"
    """Distil on sampled tokens (teacher minus student as advantage);
    by the reverse KL over the whole vocabulary, or over the student's k likeliest tokens and a tail bin;
    or by the teacher's pull on each of those k tokens."""
    top_k: Annotated[int, Bounds(1, 1024)] = 4
    """k of `top_k` and `top_k_select`, tokens."""
    opd_teacher: Literal["base", "policy"] = "base"
    """Who reads the hint: the frozen base, or the policy as it was when the step began."""
    opd_clip: Annotated[float, Bounds(1e-3, 20)] = 1.0
    """C: a token's distillation advantage is clipped to [-C, C], nats (`sampled`, `top_k_select`)."""
    hints: Annotated[int, Bounds(1, 3)] = 1
    """Teachers of a reply, from the front of `hint_prompt_ids`;
    with several their probabilities are averaged,
    but `top_k_select` takes the one whose k likeliest tokens overlap most with the student's."""


@dataclass(frozen=True, slots=True)
class StepConfig(Contract):
    """Everything that shapes one step besides the samples."""

    loss: LossConfig = field(default_factory=LossConfig)
    """What is minimised."""
    lora: LoraSpec = field(default_factory=LoraSpec)
    """Shape of the adapter; must equal the parent's."""
    lr: Annotated[float, Bounds(0, 1)] = 1e-4
    """AdamW's learning rate; 0 is a no-op by definition."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """How the learning rate goes on after the warm-up, along the policy's lineage; see `trainer/optim.py`."""
    warmup_steps: Annotated[int, Bounds(0, 1_000_000)] = 0
    """Optimiser steps in which the learning rate rises to `lr`, from the lineage's first."""
    schedule_steps: Annotated[int, Bounds(1, 10_000_000)] = 1000
    """`linear`, `cosine`: optimiser steps after the warm-up until the floor."""
    lr_floor: Fraction = 0.0
    """`linear`, `cosine`: what is left of `lr` in the end, as a fraction."""
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
    epochs: Annotated[int, Bounds(1, 16)] = 1
    """Passes over the samples; above 1 the ratios to prox leave 1 as well,
    and the drift gauge shows how far."""
    min_ess: Fraction = 0.3
    """Effective sample size of the behaviour weights, as a fraction of the tokens,
    under which a step is skipped."""
    max_rollout_k3: Annotated[float, Bounds(0, 1e9)] = 10.0
    """Mean k3(behaviour, prox), nats, above which the step is refused: the rollouts are not this policy's."""
    max_step_k3: Annotated[float, Bounds(0, 1e9)] = 10.0
    """Mean k3(prox, policy after the step), nats, on the check tokens, above which the step is refused."""
    check_tokens: Annotated[int, Bounds(0, 1_000_000)] = 256
    """Reply tokens scored again after the step, to see how far it went; 0: only the probes are looked at."""
    max_sequence_tokens: Annotated[int, Bounds(1, 1_048_576)] | None = None
    """A sample of more tokens, prompt and reply, is left out and says so; None:
    only the model's own limit."""
    token_budget: Annotated[int, Bounds(16, 10_000_000)] = 4096
    """Padded tokens in one micro-batch; a longer sequence goes alone."""
    share_prefixes: bool = True
    """Turns whose ids extend one another are read as one sequence; False:
    one turn a row, the same gradient."""
    chunk_tokens: Annotated[int, Bounds(1, 65_536)] = 128
    """Tokens whose logits over the whole vocabulary exist at once."""
    advantage: Literal["ema", "batch", "group", "step"] = "ema"
    """What a reward is compared with: the policy's moving average, the batch's mean,
    the mean of the samples of its `group`, or of those of its group at the same `step`.
    See `trainer/advantage.py`."""
    normalise: bool = False
    """Advantages of `batch`, `group` and `step` are divided by their rewards' standard deviation (GRPO)."""
    baseline_decay: Annotated[float, Bounds(0, 0.9999)] = 0.9
    """Decay of the reward baseline's moving average, per sample."""
    baseline_prior_weight: Annotated[float, Bounds(0, 1e6)] = 4.0
    """How many samples the population's mean weighs in the policy's baseline."""
