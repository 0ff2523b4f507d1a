from typing import Literal

TrainingChangeGeometricGuard = Literal["mask", "metric"]

TRAINING_CHANGE_GEOMETRIC_GUARD_VALUES: set[TrainingChangeGeometricGuard] = {
    "mask",
    "metric",
}


def check_training_change_geometric_guard(value: str) -> TrainingChangeGeometricGuard:
    if value in TRAINING_CHANGE_GEOMETRIC_GUARD_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CHANGE_GEOMETRIC_GUARD_VALUES!r}")
