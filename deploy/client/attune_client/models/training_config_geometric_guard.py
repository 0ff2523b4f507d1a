from typing import Literal

TrainingConfigGeometricGuard = Literal["mask", "metric"]

TRAINING_CONFIG_GEOMETRIC_GUARD_VALUES: set[TrainingConfigGeometricGuard] = {
    "mask",
    "metric",
}


def check_training_config_geometric_guard(value: str) -> TrainingConfigGeometricGuard:
    if value in TRAINING_CONFIG_GEOMETRIC_GUARD_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CONFIG_GEOMETRIC_GUARD_VALUES!r}")
