from typing import Literal

TrainingOverridesOrder = Literal["greedy", "strict", "windowed"]

TRAINING_OVERRIDES_ORDER_VALUES: set[TrainingOverridesOrder] = {
    "greedy",
    "strict",
    "windowed",
}


def check_training_overrides_order(value: str) -> TrainingOverridesOrder:
    if value in TRAINING_OVERRIDES_ORDER_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_OVERRIDES_ORDER_VALUES!r}")
