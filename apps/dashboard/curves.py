"""What charts show of training steps."""

from collections.abc import Mapping
from typing import Any

CURVES = {
    "loss": "loss",
    "reward_mean": "reward",
    "rollout_k3": "k3, rollout against learner",
    "ess": "effective sample size",
    "clip_fraction": "clipped",
    "staleness_mean": "mean staleness, steps",
}


def drawn(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return what the charts show of a step, where the step measured it."""
    found = {
        name: float(metrics[name])
        for name in CURVES
        if isinstance(metrics.get(name), int | float) and not isinstance(metrics.get(name), bool)
    }
    ages = metrics.get("staleness")  # {steps: samples}
    if isinstance(ages, dict) and (samples := sum(ages.values())):
        found["staleness_mean"] = sum(int(age) * n for age, n in ages.items()) / samples
    return found
