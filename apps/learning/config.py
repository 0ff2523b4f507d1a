"""How a policy learns: one typed, bounded configuration, from settings and the policy's own overrides."""

import dataclasses
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from django.conf import settings

from kernel.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Limits:
    """Inclusive bounds of a number."""

    low: float
    high: float


Weight = Annotated[float, Limits(0, 100)]


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """Everything that shapes when and how a policy makes a step."""

    lr: Annotated[float, Limits(0, 1)]
    """Learning rate of AdamW, dimensionless; 0 changes nothing."""
    batch_size: Annotated[int, Limits(1, 4096)]
    """Samples in a step."""
    flush_s: Annotated[float, Limits(0, 2_592_000)]
    """A smaller batch is taken once its oldest sample has waited this long, seconds."""
    max_staleness: Annotated[int, Limits(0, 1000)]
    """Samples from more steps back along the lineage than this are dropped, steps."""
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
    aggregation: Literal["token", "sequence", "constant"] = "token"
    """Mean over tokens, over replies of each reply's mean, or every reply as if equally long."""
    opd_kind: Literal["sampled", "full_kl", "top_k", "top_k_select"] = "full_kl"
    """Distil on the sampled tokens, over the whole vocabulary (less noise, so fewer steps and replies that stay on
    their topic), or over the likeliest tokens."""
    top_k: Annotated[int, Limits(1, 1024)] = 4
    """How many likeliest tokens that is, count."""
    opd_teacher: Literal["base", "policy"] = "base"
    """Who reads the hint: the frozen base or the policy itself."""
    opd_clip: Annotated[float, Limits(1e-3, 20)] = 1.0
    """Bound of a token's distillation advantage, nats."""
    hints: Annotated[int, Limits(1, 3)] = 1
    """Hints of a sample that teach, best first, count."""
    updates: Annotated[int, Limits(1, 64)] = 1
    """Optimiser steps in the one pass over a batch, count."""
    grad_clip: Annotated[float, Limits(1e-6, 1e6)] = 1.0
    """The gradient's norm is clipped to this, dimensionless."""
    min_ess: Annotated[float, Limits(0, 1)] = 0.3
    """Effective sample size, as a fraction of the tokens, under which a step is skipped."""
    deadline_s: Annotated[float, Limits(1, 86_400)] = 1800.0
    """A step that takes longer is ended and tried again, seconds."""
    attempts: Annotated[int, Limits(1, 100)] = 4
    """How often a run is tried before it fails, count."""
    refusals: Annotated[int, Limits(1, 100)] = 2
    """A sample is set aside after so many steps with it were thrown away, count."""

    def to_json(self) -> dict[str, Any]:
        """Return the values as plain data."""
        return dataclasses.asdict(self)


def resolve(overrides: Mapping[str, Any]) -> TrainingConfig:
    """Return the settings' configuration with a policy's overrides; InvalidInput names the field that is wrong."""
    values: dict[str, Any] = {
        "lr": settings.TRAINING_LR,
        "batch_size": settings.TRAINING_BATCH,
        "flush_s": settings.TRAINING_FLUSH_S,
        "max_staleness": settings.TRAINING_MAX_STALENESS,
        **overrides,
    }
    hints = typing.get_type_hints(TrainingConfig, include_extras=True)
    for name, value in values.items():
        if name not in hints:
            raise InvalidInput(f"there is no training setting {name!r}", field=f"config.{name}")
        values[name] = _checked(name, value, hints[name])
    return TrainingConfig(**values)


def _checked(name: str, value: Any, hint: Any) -> Any:
    field = f"config.{name}"
    if typing.get_origin(hint) is Literal:
        if value not in typing.get_args(hint):
            raise InvalidInput(f"{name} is one of {', '.join(typing.get_args(hint))}", field=field)
        return value
    kind, limits = typing.get_args(hint)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput(f"{name} is a number", field=field)
    if kind is int and value != int(value):
        raise InvalidInput(f"{name} is a whole number", field=field)
    if not limits.low <= value <= limits.high:
        raise InvalidInput(f"{name} lies between {limits.low:g} and {limits.high:g}", field=field)
    return kind(value)
