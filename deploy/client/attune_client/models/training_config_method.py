from typing import Literal

TrainingConfigMethod = Literal["binary", "combined", "opd"]

TRAINING_CONFIG_METHOD_VALUES: set[TrainingConfigMethod] = {
    "binary",
    "combined",
    "opd",
}


def check_training_config_method(value: str) -> TrainingConfigMethod:
    if value in TRAINING_CONFIG_METHOD_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CONFIG_METHOD_VALUES!r}")
