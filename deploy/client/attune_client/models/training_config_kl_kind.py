from typing import Literal

TrainingConfigKlKind = Literal["k1", "k2", "k3"]

TRAINING_CONFIG_KL_KIND_VALUES: set[TrainingConfigKlKind] = {
    "k1",
    "k2",
    "k3",
}


def check_training_config_kl_kind(value: str) -> TrainingConfigKlKind:
    if value in TRAINING_CONFIG_KL_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CONFIG_KL_KIND_VALUES!r}")
