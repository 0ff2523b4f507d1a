from typing import Literal

TrainingChangeAdvantage = Literal["batch", "ema", "group", "step"]

TRAINING_CHANGE_ADVANTAGE_VALUES: set[TrainingChangeAdvantage] = {
    "batch",
    "ema",
    "group",
    "step",
}


def check_training_change_advantage(value: str) -> TrainingChangeAdvantage:
    if value in TRAINING_CHANGE_ADVANTAGE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CHANGE_ADVANTAGE_VALUES!r}")
