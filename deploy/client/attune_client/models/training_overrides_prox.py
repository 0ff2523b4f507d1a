from typing import Literal

TrainingOverridesProx = Literal["interpolated", "recomputed"]

TRAINING_OVERRIDES_PROX_VALUES: set[TrainingOverridesProx] = {
    "interpolated",
    "recomputed",
}


def check_training_overrides_prox(value: str) -> TrainingOverridesProx:
    if value in TRAINING_OVERRIDES_PROX_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_OVERRIDES_PROX_VALUES!r}")
