"""How a policy learns: one typed, bounded configuration, from settings and the policy's own overrides."""

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from django.conf import settings

from apps.learning.drift import bounds as drift
from kernel.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Limits:
    """Inclusive bounds of a number."""

    low: float
    high: float


Weight = Annotated[float, Limits(0, 100)]


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """Everything that shapes when and how a policy makes a step,
    and how long what it may learn from is kept."""

    lr: Annotated[float, Limits(0, 1)]
    """Learning rate of AdamW, dimensionless; 0 changes nothing."""
    batch_size: Annotated[int, Limits(1, 4096)]
    """Samples in a step."""
    flush_s: Annotated[float, Limits(0, 2_592_000)]
    """A smaller batch is taken once its oldest sample has waited this long, seconds."""
    max_staleness: Annotated[int, Limits(0, 1000)]
    """Samples from more steps back along the lineage than this are stale, steps."""
    past_staleness: Literal["drop", "down_weight"] = "drop"
    """What becomes of a stale sample: nothing, or it counts half as much for each step more,
    until that is too little."""
    order: Literal["windowed", "strict", "greedy"] = "windowed"
    """How the queue is taken from: whatever ended among the oldest, the oldest alone,
    or whatever ended first."""
    buffer: Annotated[int, Limits(1, 65_536)] = 128
    """Size of the buffer that the window is a part of, turns."""
    window: Annotated[float, Limits(0, 1)] = 0.3
    """That part; the window has at least one place, dimensionless."""
    exploration: Literal["off", "adapt"] = "off"
    """Whether the policy's default temperature follows what its batches show."""
    temperature_low: Annotated[float, Limits(0.01, 2)] = 0.5
    """The lowest that it may become, dimensionless."""
    temperature_high: Annotated[float, Limits(0.01, 2)] = 1.0
    """The highest, dimensionless."""
    temperature_step: Annotated[float, Limits(0, 1)] = 0.05
    """The most that one training step moves it, dimensionless."""
    method: Literal["combined", "binary", "opd"] = "combined"
    """Which signals teach: rewards and hints, rewards alone, hints alone."""
    rl_weight: Weight = 1.0
    """Weight of the reward part, dimensionless."""
    opd_weight: Weight = 1.0
    """Weight of the distillation part, dimensionless."""
    kl_weight: Weight = 0.0
    """Weight of the KL divergence to the base, dimensionless."""
    kl_kind: Literal["k1", "k2", "k3"] = "k3"
    """How that divergence is estimated from a sampled token."""
    policy_form: Literal["decoupled", "doubly_clipped", "plain", "gspo", "cispo"] = "decoupled"
    """How probability ratios enter the reward part."""
    prox: Literal["recomputed", "interpolated"] = "recomputed"
    """What ratios are taken to: the policy as the step began,
    or between it and the one that sampled, by staleness."""
    aggregation: Literal["token", "sequence", "constant"] = "token"
    """Mean over tokens, over replies of each reply's mean, or every reply as if equally long."""
    constant_tokens: Annotated[int, Limits(1, 1_048_576)] = 1024
    """How long `constant` takes every reply to be, tokens."""
    clip_low: Annotated[float, Limits(0, 1)] = 0.2
    """The ratio is clipped below at 1 minus this, dimensionless."""
    clip_high: Annotated[float, Limits(0, 10)] = 0.28
    """The ratio is clipped above at 1 plus this, dimensionless."""
    dual_clip: Annotated[float, Limits(1, 100)] | None = 3.0
    """A bad reply's objective is never below this many times its advantage,
    dimensionless; None: no such floor."""
    behaviour_cap: Literal["mask", "truncate"] = "mask"
    """What happens to tokens that the policy has moved away from since they were
    sampled: left out, or capped."""
    behaviour_mask_above: Annotated[float, Limits(1, 1e6)] = 5.0
    """`mask`: tokens whose weight (policy / sampler) is over this are left out, dimensionless."""
    behaviour_truncate_at: Annotated[float, Limits(1, 1e6)] = 2.0
    """`truncate`: the weight is at most this, dimensionless."""
    opsm_delta: Annotated[float, Limits(0, 100)] | None = None
    """A bad reply further from the policy than this is left out, nats a token; None: none is."""
    geometric_guard: Literal["metric", "mask"] = "metric"
    """Replies whose mean ratio leaves the band below are only counted, or left out of ratio losses."""
    geometric_low: Annotated[float, Limits(0, 1)] = 0.99
    """Lower end of the band, dimensionless."""
    geometric_high: Annotated[float, Limits(1, 100)] = 1.01
    """Upper end of the band, dimensionless."""
    opd_kind: Literal["sampled", "full_kl", "top_k", "top_k_select"] = "full_kl"
    """Distil on the sampled tokens, over the whole vocabulary (less noise,
    so fewer steps and replies that stay on their topic), or over the likeliest tokens."""
    top_k: Annotated[int, Limits(1, 1024)] = 4
    """How many likeliest tokens that is, count."""
    opd_teacher: Literal["base", "policy"] = "base"
    """Who reads the hint: the frozen base or the policy itself."""
    opd_clip: Annotated[float, Limits(1e-3, 20)] = 1.0
    """Bound of a token's distillation advantage, nats."""
    hints: Annotated[int, Limits(1, 3)] = 1
    """Hints of a sample that teach, best first, count."""
    advantage: Literal["ema", "batch", "group", "step"] = "ema"
    """What a reward is compared with: the policy's moving average, the batch,
    the rollouts of its task, or those at the same step. Only rollouts have a task:
    other samples get no advantage from the last two."""
    normalise: bool = False
    """Whether advantages (not those of `ema`) are divided by their rewards' standard deviation."""
    baseline_decay: Annotated[float, Limits(0, 0.9999)] = 0.9
    """Decay of the rewards' moving average, a sample."""
    baseline_prior_weight: Annotated[float, Limits(0, 1e6)] = 4.0
    """How many samples the population's mean reward weighs in the policy's average, count."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """How the learning rate goes on after the warm-up, along the policy's lineage."""
    warmup_steps: Annotated[int, Limits(0, 1_000_000)] = 0
    """Optimiser steps in which the learning rate rises, from the lineage's first, count."""
    schedule_steps: Annotated[int, Limits(1, 10_000_000)] = 1000
    """`linear`, `cosine`: optimiser steps from the warm-up to the floor, count."""
    lr_floor: Annotated[float, Limits(0, 1)] = 0.0
    """`linear`, `cosine`: what is left of the learning rate in the end, as a fraction."""
    beta1: Annotated[float, Limits(0, 0.9999)] = 0.9
    """AdamW's decay of the first moment, a step."""
    beta2: Annotated[float, Limits(0, 0.99999)] = 0.999
    """AdamW's decay of the second moment, a step."""
    adam_eps: Annotated[float, Limits(1e-12, 1e-2)] = 1e-8
    """AdamW's epsilon, dimensionless."""
    weight_decay: Annotated[float, Limits(0, 1)] = 0.0
    """AdamW's decoupled weight decay, dimensionless."""
    epochs: Annotated[int, Limits(1, 16)] = 1
    """Passes over a batch, count; above 1 the policy leaves the replies that it was sampled with."""
    shadow_epochs: Annotated[int, Limits(1, 16)] = 3
    """The same of a batch of shadow replies: they carry no reward, and a divergence over the whole vocabulary
    holds wherever its tokens came from."""
    updates: Annotated[int, Limits(1, 64)] = 1
    """Optimiser steps in the one pass over a batch, count."""
    grad_clip: Annotated[float, Limits(1e-6, 1e6)] = 1.0
    """The gradient's norm is clipped to this, dimensionless."""
    max_grad_norm: Annotated[float, Limits(1e-6, 1e12)] = 1e4
    """A norm over this before clipping throws the step away, dimensionless."""
    min_ess: Annotated[float, Limits(0, 1)] = 0.3
    """Effective sample size, as a fraction of the tokens, under which a step is skipped."""
    max_rollout_k3: Annotated[float, Limits(0, 1e9)] = 10.0
    """Mean divergence of sampler and policy over which the step is thrown away, nats a token."""
    max_step_k3: Annotated[float, Limits(0, 1e9)] = 10.0
    """Mean divergence of the policy before and after the step over which it is thrown away, nats a token."""
    check_tokens: Annotated[int, Limits(0, 1_000_000)] = 256
    """Reply tokens on which that is measured, count; 0: not at all."""
    max_sequence_tokens: Annotated[int, Limits(1, 1_048_576)] | None = None
    """A longer sample, prompt and reply, is left out and says so, tokens; None:
    only the model's own limit."""
    deadline_s: Annotated[float, Limits(1, 86_400)] = 1800.0
    """A step that takes longer is ended and tried again, seconds."""
    attempts: Annotated[int, Limits(1, 100)] = 4
    """How often a run is tried before it fails, count."""
    refusals: Annotated[int, Limits(1, 100)] = 2
    """A sample is set aside after so many steps with it were thrown away, count."""
    retention_days: Annotated[int, Limits(1, 3650)] | None = None
    """Sessions in which nothing was said for longer are deleted, whatever still waits of them,
    days; None: they are kept."""

    def to_json(self) -> dict[str, Any]:
        """Return the values as plain data."""
        return dataclasses.asdict(self)


def described() -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each setting, by name: its type, bounds or choices."""
    hints = typing.get_type_hints(TrainingConfig, include_extras=True)
    return {name: _described(hint) for name, hint in hints.items()}


def _described(hint: Any) -> dict[str, Any]:
    if typing.get_origin(hint) is Literal:
        return {"type": "string", "enum": list(typing.get_args(hint))}
    if hint is bool:
        return {"type": "boolean"}
    options = typing.get_args(hint)
    if type(None) in options:
        number = next(_described(option) for option in options if option is not type(None))
        return {**number, "nullable": True}
    kind, limits = options
    return {
        "type": "integer" if kind is int else "number",
        "minimum": limits.low,
        "maximum": limits.high,
    }


def resolve(overrides: Mapping[str, Any]) -> TrainingConfig:
    """Return the settings' configuration with a policy's overrides;
    InvalidInput names the field that is wrong."""
    values: dict[str, Any] = {
        "lr": settings.TRAINING_LR,
        "batch_size": settings.TRAINING_BATCH,
        "flush_s": settings.TRAINING_FLUSH_S,
        "max_staleness": settings.TRAINING_MAX_STALENESS,
        **overrides,
    }
    drift.resolve({"drift": values.pop("drift", {})})  # bounds of the gauges, which shape no step
    hints = typing.get_type_hints(TrainingConfig, include_extras=True)
    for name, value in values.items():
        if name not in hints:
            raise InvalidInput(f"there is no training setting {name!r}", field=f"config.{name}")
        values[name] = _checked(name, value, hints[name])
    config = TrainingConfig(**values)
    if config.temperature_low > config.temperature_high:
        raise InvalidInput(
            f"temperature_low ({config.temperature_low:g}) is above temperature_high ({config.temperature_high:g})",
            field="config.temperature_low",
        )
    return config


def _checked(name: str, value: Any, hint: Any) -> Any:
    field = f"config.{name}"
    if type(None) in typing.get_args(hint) and typing.get_origin(hint) is not Literal:
        if value is None:
            return None
        hint = next(kind for kind in typing.get_args(hint) if kind is not type(None))
    if typing.get_origin(hint) is Literal:
        if value not in typing.get_args(hint):
            raise InvalidInput(f"{name} is one of {', '.join(typing.get_args(hint))}", field=field)
        return value
    if hint is bool:
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} is true or false", field=field)
        return value
    kind, limits = typing.get_args(hint)
    if not drift.is_number(value):
        raise InvalidInput(f"{name} is a number", field=field)
    if kind is int and value != int(value):
        raise InvalidInput(f"{name} is a whole number", field=field)
    if not limits.low <= value <= limits.high:
        raise InvalidInput(f"{name} lies between {limits.low:g} and {limits.high:g}", field=field)
    return kind(value)
