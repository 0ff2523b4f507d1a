from __future__ import annotations

from typing import Any

import pytest
import torch

from trainer.contracts import StepConfig
from trainer.optim import learning_rate, set_learning_rate


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("linear", [0.5, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2, 0.2]),
        ("cosine", [0.5, 1.0, 1.0, 0.882842712, 0.6, 0.317157288, 0.2, 0.2]),
    ],
)
def test_the_rate_rises_then_goes_down_to_its_floor_and_stays(schedule: Any, expected: list[float]) -> None:
    config = StepConfig(lr=1.0, warmup_steps=2, schedule=schedule, schedule_steps=4, lr_floor=0.2)
    assert [learning_rate(config, step) for step in range(len(expected))] == pytest.approx(expected)


def test_it_is_set_on_every_group() -> None:
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.AdamW([parameter], lr=9.0)
    set_learning_rate(optimizer, StepConfig(lr=0.1), 3)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1]
