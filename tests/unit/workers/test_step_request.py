"""A policy's configuration in the trainer's words: every choice that can be made arrives."""

import dataclasses
import typing
from typing import Any

import pytest

from apps.learning.config import TrainingConfig, resolve
from trainer.contracts import LoraSpec, LossConfig, StepConfig
from workers.step_request import step_config

LORA = LoraSpec(rank=4, alpha=8.0)
SAID_ELSEWHERE = {
    "loss": "its fields are a policy's one by one",
    "lora": "the adapter's shape is the installation's (LORA_RANK, LORA_ALPHA), or its parent's",
    "token_budget": "memory of the machine, not of the policy (TRAINER_TOKEN_BUDGET)",
    "chunk_tokens": "memory of the machine; every value gives the same gradient within rounding",
    "share_prefixes": "either way the same gradient; rows of their own are there to be compared with",
}
"""Fields of the trainer's configuration that no policy sets, and why."""
FIELDS = [
    (kind, field.name)
    for kind in (LossConfig, StepConfig)
    for field in dataclasses.fields(kind)
    if field.name not in SAID_ELSEWHERE
]


def _choices(kind: type, name: str) -> set[Any] | None:
    hint = typing.get_type_hints(kind)[name]
    if hint is bool:
        return {True, False}
    return set(typing.get_args(hint)) if typing.get_origin(hint) is typing.Literal else None


def _limits(kind: type, name: str) -> tuple[bool, type, float, float]:
    """Whether it may be None, its type, and its bounds."""
    hint = typing.get_type_hints(kind, include_extras=True)[name]
    optional = type(None) in typing.get_args(hint)
    if optional:
        hint = next(one for one in typing.get_args(hint) if one is not type(None))
    number, bounds = typing.get_args(hint)
    return optional, number, bounds.low, bounds.high


@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=[name for _, name in FIELDS])
def test_every_field_of_the_trainers_configuration_is_a_policys_choice_within_the_same_bounds(
    kind: type, name: str
) -> None:
    choices = _choices(kind, name)
    assert choices == _choices(TrainingConfig, name)
    if choices is None:
        expected = _limits(kind, name)
        assert _limits(TrainingConfig, name) == expected
        optional, number, low, high = expected
        choices = {number(low), number(high), *([None] if optional else [])}
    for value in choices:
        config = step_config(resolve({name: value}), lora=LORA)
        assert getattr(config.loss if kind is LossConfig else config, name) == value


def test_what_no_policy_sets_is_listed_and_nothing_else() -> None:
    fields = {f.name for kind in (LossConfig, StepConfig) for f in dataclasses.fields(kind)}
    own = {f.name for f in dataclasses.fields(TrainingConfig)}
    assert fields - own == set(SAID_ELSEWHERE)


def test_the_method_leaves_the_other_signal_out() -> None:
    weights = {
        method: (config.loss.rl_weight, config.loss.opd_weight)
        for method in ("combined", "binary", "opd")
        for config in [step_config(resolve({"method": method}), lora=LORA)]
    }
    assert weights == {"combined": (1.0, 1.0), "binary": (1.0, 0.0), "opd": (0.0, 1.0)}


def test_the_adapters_shape_and_the_optimisers_numbers_arrive() -> None:
    config = step_config(resolve({"lr": 0.01, "updates": 2, "grad_clip": 3.0, "min_ess": 0.5}), lora=LORA)
    assert (config.lora.rank, config.lora.alpha) == (4, 8.0)
    assert (config.lr, config.updates, config.grad_clip, config.min_ess) == (0.01, 2, 3.0, 0.5)
