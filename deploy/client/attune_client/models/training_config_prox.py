from typing import Literal

TrainingConfigProx = Literal["interpolated", "recomputed"]

TRAINING_CONFIG_PROX_VALUES: set[TrainingConfigProx] = {
    "interpolated",
    "recomputed",
}


def check_training_config_prox(value: str) -> TrainingConfigProx:
    if value in TRAINING_CONFIG_PROX_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CONFIG_PROX_VALUES!r}")
