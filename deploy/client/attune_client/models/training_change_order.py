from typing import Literal

TrainingChangeOrder = Literal["greedy", "strict", "windowed"]

TRAINING_CHANGE_ORDER_VALUES: set[TrainingChangeOrder] = {
    "greedy",
    "strict",
    "windowed",
}


def check_training_change_order(value: str) -> TrainingChangeOrder:
    if value in TRAINING_CHANGE_ORDER_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CHANGE_ORDER_VALUES!r}")
