from typing import Literal

TrainingOverridesGeometricGuard = Literal["mask", "metric"]

TRAINING_OVERRIDES_GEOMETRIC_GUARD_VALUES: set[TrainingOverridesGeometricGuard] = {
    "mask",
    "metric",
}


def check_training_overrides_geometric_guard(value: str) -> TrainingOverridesGeometricGuard:
    if value in TRAINING_OVERRIDES_GEOMETRIC_GUARD_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {TRAINING_OVERRIDES_GEOMETRIC_GUARD_VALUES!r}"
    )
