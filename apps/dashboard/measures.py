"""What a step measured, in words: the trainer's names are its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.dashboard.curves import CURVES, drawn
from apps.dashboard.templatetags.pages import number

# name: what it is, and its unit; "%" is of a fraction
_WORDS: dict[str, tuple[str, str]] = {
    # what the losses did
    "loss": ("Loss", ""),
    "loss_rl": ("Loss of the rewards", ""),
    "loss_opd": ("Loss of the hints", ""),
    "loss_kl": ("Loss of the distance to the base", ""),
    "clip_fraction": ("Tokens clipped", "%"),
    "mask_fraction": ("Tokens left out, too far off-policy", "%"),
    "reward_mean": ("Mean reward", ""),
    "baseline": ("Reward that it is used to", ""),
    "advantage_abs_mean": ("Mean size of an advantage", ""),
    "opd_advantage_mean": ("Mean pull of the hints", "nats"),
    "opd_clip_fraction": ("Pulls of the hints that were clipped", "%"),
    "opd_kl_mean": ("Mean distance to the hinted teacher, KL", "nats"),
    # engine against learner, on the same tokens
    "rollout_k3": ("Engine against learner, k3", "nats"),
    "train_rollout_logprob_abs_diff": ("Engine against learner, mean difference", "nats"),
    "rollout_logprob_abs_diff_max": ("Engine against learner, largest difference", "nats"),
    "ratio_mean": ("Learner by engine, mean ratio", ""),
    "ratio_max": ("Learner by engine, largest ratio", ""),
    "ess": ("Effective sample size", "%"),
    "geometric_outside_fraction": ("Tokens of replies outside the guard's band", "%"),
    "staleness_mean": ("Mean staleness", "steps"),
    "staleness": ("Samples by their staleness in steps", ""),
    # sizes
    "samples": ("Samples", ""),
    "samples_rl": ("Samples with a reward", ""),
    "samples_opd": ("Samples with a hint", ""),
    "down_weighted": ("Samples that counted less, as stale", ""),
    "tokens": ("Reply tokens", ""),
    "tokens_rl": ("Reply tokens with a reward", ""),
    "tokens_opd": ("Reply tokens with a hint", ""),
    "tokens_prompt": ("Prompt tokens", ""),
    "sequences": ("Sequences, turns of a session as one", ""),
    "tokens_read": ("Tokens read, turns of a session as one", ""),
    # the step
    "lr": ("Learning rate", ""),
    "step": ("Step of the optimiser", ""),
    "grad_norm": ("Norm of the gradient", ""),
    "step_logprob_abs_diff": ("How far the step moved the policy, mean difference", "nats"),
    "step_k3": ("How far the step moved the policy, k3", "nats"),
    "seconds": ("Seconds by phase", "s"),
    "exploration": ("Exploration", ""),
    "code": ("How it ended", ""),
}


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of a step."""

    name: str
    """As REST and the trainer call it."""
    words: str
    said: str
    """The figure with its unit."""


def measures(metrics: Mapping[str, Any]) -> list[Measure]:
    """Return everything a step measured, the known ones in the order of their kinds,
    then the others by name."""
    order = {name: place for place, name in enumerate(_WORDS)}
    return [
        _measure(name, metrics[name]) for name in sorted(metrics, key=lambda one: (order.get(one, 99), one))
    ]


def main_measures(metrics: Mapping[str, Any]) -> list[Measure]:
    """Return what the charts show of a step."""
    found = drawn(metrics)
    return [_measure(name, found[name]) for name in CURVES if name in found]


def _measure(name: str, value: Any) -> Measure:
    words, unit = _WORDS.get(name, (name, ""))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if unit == "%" and is_number:
        return Measure(name, words, f"{100 * value:.3g} %")
    said = f"{value:.0f}" if is_number and value == int(value) and abs(value) < 1e9 else number(value)
    return Measure(name, words, " ".join(filter(None, (said, unit if is_number else ""))))
