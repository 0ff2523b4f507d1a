"""A policy's configuration in the trainer's words: every choice that can be made arrives."""

import dataclasses
import typing
from typing import Any

import pytest

from apps.learning.config import TrainingConfig, resolve
from trainer.contracts import LossConfig
from workers.step_request import step_config

SHARED = sorted(
    {field.name for field in dataclasses.fields(TrainingConfig)}
    & {f.name for f in dataclasses.fields(LossConfig)}
)


def _choices(kind: type, name: str) -> set[Any] | None:
    hint = typing.get_type_hints(kind)[name]
    return set(typing.get_args(hint)) if typing.get_origin(hint) is typing.Literal else None


@pytest.mark.parametrize("name", SHARED)
def test_a_choice_of_the_loss_can_be_made_and_arrives(name: str) -> None:
    choices = _choices(TrainingConfig, name)
    assert choices == _choices(LossConfig, name)
    for value in choices or {2}:
        loss = step_config(resolve({name: value}), rank=4, alpha=8).loss
        assert getattr(loss, name) == value


def test_the_method_leaves_the_other_signal_out() -> None:
    weights = {
        method: (config.loss.rl_weight, config.loss.opd_weight)
        for method in ("combined", "binary", "opd")
        for config in [step_config(resolve({"method": method}), rank=4, alpha=8)]
    }
    assert weights == {"combined": (1.0, 1.0), "binary": (1.0, 0.0), "opd": (0.0, 1.0)}


def test_the_adapters_shape_and_the_optimisers_numbers_arrive() -> None:
    config = step_config(
        resolve({"lr": 0.01, "updates": 2, "grad_clip": 3.0, "min_ess": 0.5}), rank=4, alpha=8
    )
    assert (config.lora.rank, config.lora.alpha) == (4, 8.0)
    assert (config.lr, config.updates, config.grad_clip, config.min_ess) == (0.01, 2, 3.0, 0.5)
