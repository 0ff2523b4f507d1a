"""A policy's training configuration: settings, overrides, bounds."""

from typing import Any

import pytest
from pytest_django import Settings

from apps.learning.config import TrainingConfig, resolve
from kernel.errors import InvalidInput


def test_the_settings_are_the_defaults_and_the_policy_overrides_them(settings: Settings) -> None:
    settings.TRAINING_LR, settings.TRAINING_BATCH = 3e-4, 5
    settings.TRAINING_FLUSH_S, settings.TRAINING_MAX_STALENESS = 60.0, 2
    plain = resolve({})
    assert (plain.lr, plain.batch_size, plain.flush_s, plain.max_staleness) == (3e-4, 5, 60.0, 2)
    assert resolve({"lr": 0, "batch_size": 16.0}) == TrainingConfig(
        lr=0.0, batch_size=16, flush_s=60.0, max_staleness=2
    )
    assert resolve(plain.to_json()) == plain


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lr", -1e-9), ("lr", float("nan")), ("lr", float("inf")), ("lr", "fast"), ("lr", True), ("lr", None),
        ("batch_size", 0), ("batch_size", 1.5), ("hints", 4), ("method", "magic"), ("opd_kind", 1), ("nothing", 1),
        ("min_ess", 1.01), ("deadline_s", 0.5), ("normalise", 1), ("normalise", None), ("dual_clip", 0.5),
        ("opsm_delta", "never"), ("max_sequence_tokens", 0), ("schedule", None),
        ("order", "random"), ("window", 1.1), ("buffer", 0),
        ("temperature_low", 1.5), ("temperature_high", 2.1), ("past_staleness", "keep"),
    ],
)  # fmt: skip
def test_what_is_out_of_bounds_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidInput) as error:
        resolve({name: value})
    assert error.value.field == f"config.{name}"


def test_what_may_be_absent_is_none_and_outlives_json() -> None:
    config = resolve({"dual_clip": None, "max_sequence_tokens": 512, "normalise": True})
    assert (config.dual_clip, config.max_sequence_tokens, config.opsm_delta) == (None, 512, None)
    assert resolve(config.to_json()) == config
