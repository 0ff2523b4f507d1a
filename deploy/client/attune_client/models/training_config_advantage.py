from typing import Literal

TrainingConfigAdvantage = Literal["batch", "ema", "group", "step"]

TRAINING_CONFIG_ADVANTAGE_VALUES: set[TrainingConfigAdvantage] = {
    "batch",
    "ema",
    "group",
    "step",
}


def check_training_config_advantage(value: str) -> TrainingConfigAdvantage:
    if value in TRAINING_CONFIG_ADVANTAGE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CONFIG_ADVANTAGE_VALUES!r}")
