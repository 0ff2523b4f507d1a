from typing import Literal

TrainingConfigOrder = Literal["greedy", "strict", "windowed"]

TRAINING_CONFIG_ORDER_VALUES: set[TrainingConfigOrder] = {
    "greedy",
    "strict",
    "windowed",
}


def check_training_config_order(value: str) -> TrainingConfigOrder:
    if value in TRAINING_CONFIG_ORDER_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CONFIG_ORDER_VALUES!r}")
