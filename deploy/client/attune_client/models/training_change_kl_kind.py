from typing import Literal

TrainingChangeKlKind = Literal["k1", "k2", "k3"]

TRAINING_CHANGE_KL_KIND_VALUES: set[TrainingChangeKlKind] = {
    "k1",
    "k2",
    "k3",
}


def check_training_change_kl_kind(value: str) -> TrainingChangeKlKind:
    if value in TRAINING_CHANGE_KL_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CHANGE_KL_KIND_VALUES!r}")
