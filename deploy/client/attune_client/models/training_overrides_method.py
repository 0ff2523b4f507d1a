from typing import Literal

TrainingOverridesMethod = Literal["binary", "combined", "opd"]

TRAINING_OVERRIDES_METHOD_VALUES: set[TrainingOverridesMethod] = {
    "binary",
    "combined",
    "opd",
}


def check_training_overrides_method(value: str) -> TrainingOverridesMethod:
    if value in TRAINING_OVERRIDES_METHOD_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_OVERRIDES_METHOD_VALUES!r}")
