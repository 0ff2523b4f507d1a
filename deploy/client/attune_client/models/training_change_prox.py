from typing import Literal

TrainingChangeProx = Literal["interpolated", "recomputed"]

TRAINING_CHANGE_PROX_VALUES: set[TrainingChangeProx] = {
    "interpolated",
    "recomputed",
}


def check_training_change_prox(value: str) -> TrainingChangeProx:
    if value in TRAINING_CHANGE_PROX_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CHANGE_PROX_VALUES!r}")
