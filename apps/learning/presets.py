"""Named ways to learn: a few numbers that belong together, relative to what the platform's settings say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.learning.config import described, resolve


@dataclass(frozen=True, slots=True)
class Preset:
    """Values of the settings that presets speak of;
    what is not in `times` or `values` is as the platform has it."""

    name: str
    about: str
    """For whom it is, in words."""
    times: Mapping[str, float]
    """Factors of the platform's values."""
    values: Mapping[str, Any]

    def overrides(self) -> dict[str, Any]:
        """Return the preset's overrides under the settings of now, within their bounds."""
        base, bounds = resolve({}), described()
        found = {
            name: _within(bounds[name], getattr(base, name) * factor) for name, factor in self.times.items()
        }
        return {**found, **self.values}


def _within(bounds: Mapping[str, Any], value: float) -> float:
    """Return the nearest value that a setting takes, to six digits: 0.0002, not 0.00019999999999999998."""
    near = round(value) if bounds["type"] == "integer" else float(f"{value:.6g}")
    return type(near)(min(max(near, bounds["minimum"]), bounds["maximum"]))


# An update's length grows with the learning rate and its noise falls with the batch: a gentle policy takes
# the mean of more turns, half as far, and is held to the base; a quick one answers to a few turns at once.
# Its batches come sooner, so the same wait is more steps along the lineage: η doubles, or it would drop what
# it has just been told.
PRESETS: tuple[Preset, ...] = (
    Preset("standard", "As the platform has it: right for most.", {}, {}),
    Preset(
        "gentle",
        "Changes little at a time: many people, or an assistant that must stay as it is.",
        {"lr": 0.5, "batch_size": 2.0, "flush_s": 4.0},
        {"kl_weight": 0.02},
    ),
    Preset(
        "quick",
        "Learns from a few turns at once: one person, or a trial. It forgets sooner, too.",
        {"lr": 2.0, "batch_size": 0.5, "flush_s": 0.25, "max_staleness": 2.0},
        {},
    ),
)
BY_NAME: Mapping[str, Preset] = {preset.name: preset for preset in PRESETS}
SPOKEN_OF = ("lr", "batch_size", "flush_s", "max_staleness", "kl_weight")
"""The settings that choosing a preset sets; it leaves all others."""


def preset_of(overrides: Mapping[str, Any]) -> str:
    """Return the preset that a policy's overrides are, as far as presets speak of them; "" for none."""
    own = resolve(overrides)
    for preset in PRESETS:
        there = resolve(preset.overrides())
        if all(getattr(own, name) == getattr(there, name) for name in SPOKEN_OF):
            return preset.name
    return ""
