from __future__ import annotations

from typing import Any

import pytest

from trainer.contracts import BaselineState, LossConfig, SampleInput, StepConfig
from trainer.signals import Shares, Signal, read_signals, shares

ZERO = BaselineState(mean=0.0, count=1.0)


def sample(**fields: Any) -> SampleInput:
    known: dict[str, Any] = {
        "sample_id": "a",
        "prompt_ids": (1, 2),
        "output_ids": (3, 4),
        "output_logprobs": (-1.0, -1.0),
        "temperature": 0.7,
        "reward": 1.0,
        "hint_prompt_ids": ((1, 2, 5),),
    }
    return SampleInput(**{**known, **fields})


def read(
    *samples: SampleInput, config: StepConfig | None = None, baseline: BaselineState = ZERO
) -> list[Signal]:
    return read_signals(samples, config or StepConfig(), baseline, vocab=100, max_tokens=10)


def test_a_reply_with_both_signals_takes_part_in_both() -> None:
    (signal,) = read(sample())
    assert (signal.parts, signal.advantage, signal.reason) == (("rl", "opd"), 1.0, "")


@pytest.mark.parametrize(
    ("fields", "parts", "reason"),
    [
        ({"reward": None}, ("opd",), "no reward"),
        ({"hint_prompt_ids": ()}, ("rl",), "no hint"),
        ({"truncated": True}, ("opd",), "cut by the length limit: no reward"),
        ({"temperature": 0.0}, ("opd",), "greedy: no behaviour distribution"),
        ({"exact_sampling": False}, ("opd",), "truncated or penalised sampling: no exact ratio"),
        ({"output_logprobs": None}, ("opd",), "no engine log-probabilities"),
        ({"reward": None, "hint_prompt_ids": ()}, (), "no reward; no hint"),
        ({"prompt_ids": tuple(range(9))}, (), "longer than the limit of 10 tokens"),
        ({"output_ids": (3, 100)}, (), "a token id outside the vocabulary of 100"),
        ({"hint_prompt_ids": (tuple(range(9)),)}, ("rl",), "its hinted prompt does not fit the model"),
    ],
)
def test_what_cannot_take_part_says_why(fields: dict[str, Any], parts: tuple[str, ...], reason: str) -> None:
    (signal,) = read(sample(**fields))
    assert (signal.parts, signal.reason) == (parts, reason)


def test_the_first_hint_teaches_unless_more_are_asked_for() -> None:
    one = sample(hint_prompt_ids=((1, 5), (1, 6), (1, 7)))
    assert read(one)[0].teachers == ((1, 5),)
    config = StepConfig(loss=LossConfig(hints=2))
    assert read(one, config=config)[0].teachers == ((1, 5), (1, 6))


def test_a_hint_that_does_not_fit_leaves_its_place_to_the_next() -> None:
    assert read(sample(hint_prompt_ids=((200,), (1, 6))))[0].teachers == ((1, 6),)


def test_a_part_with_no_weight_is_switched_off() -> None:
    config = StepConfig(loss=LossConfig(rl_weight=0.0, opd_weight=0.0))
    (signal,) = read(sample(), config=config)
    assert (signal.parts, signal.reason) == ((), "rewards are switched off; distillation is switched off")


def test_a_greedy_reply_is_scored_at_temperature_one() -> None:
    assert read(sample(temperature=0.0))[0].temperature == 1.0
    assert read(sample())[0].temperature == 0.7


def test_the_baseline_counts_only_rewards_that_take_part() -> None:
    signals = read(
        sample(reward=1.0), sample(reward=0.0), sample(reward=-1.0, truncated=True), baseline=BaselineState()
    )
    assert [s.advantage for s in signals] == [0.5, -0.5, 0.0]


def test_every_loss_is_a_mean_over_the_tokens_of_all_samples_that_take_part() -> None:
    signals = read(
        sample(output_ids=(3, 4, 5), output_logprobs=(-1.0,) * 3, hint_prompt_ids=()),
        sample(reward=None),
        sample(reward=None, hint_prompt_ids=()),
    )
    assert shares(signals, StepConfig()) == [
        Shares(0.2, 0.0, 0.2),
        Shares(0.0, 0.2, 0.2),
        Shares(0.0, 0.0, 0.0),
    ]


def test_or_over_their_replies() -> None:
    config = StepConfig(loss=LossConfig(aggregation="sequence"))
    signals = read(sample(output_ids=(3, 4, 5), output_logprobs=(-1.0,) * 3), sample())
    assert [s.rl for s in shares(signals, config)] == [1 / 6, 1 / 4]


def test_outcome_and_process_are_added_and_compared_within_the_task() -> None:
    config = StepConfig(advantage="step")
    signals = read(
        sample(reward=0.5, outcome=1.0, group="task", step=2),
        sample(reward=None, outcome=0.0, group="task", step=2),
        sample(reward=1.0, group="other", step=2, hint_prompt_ids=()),
        config=config,
    )
    assert [signal.advantage for signal in signals] == [0.75, -0.75, 0.0]
    assert signals[2].reason == "no other rollout of its task to be compared with; no hint"
    assert signals[2].parts == ()
