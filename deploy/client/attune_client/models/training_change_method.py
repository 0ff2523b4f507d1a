from typing import Literal

TrainingChangeMethod = Literal["binary", "combined", "opd"]

TRAINING_CHANGE_METHOD_VALUES: set[TrainingChangeMethod] = {
    "binary",
    "combined",
    "opd",
}


def check_training_change_method(value: str) -> TrainingChangeMethod:
    if value in TRAINING_CHANGE_METHOD_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CHANGE_METHOD_VALUES!r}")
