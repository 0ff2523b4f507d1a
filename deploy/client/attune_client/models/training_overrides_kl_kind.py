from typing import Literal

TrainingOverridesKlKind = Literal["k1", "k2", "k3"]

TRAINING_OVERRIDES_KL_KIND_VALUES: set[TrainingOverridesKlKind] = {
    "k1",
    "k2",
    "k3",
}


def check_training_overrides_kl_kind(value: str) -> TrainingOverridesKlKind:
    if value in TRAINING_OVERRIDES_KL_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_OVERRIDES_KL_KIND_VALUES!r}")
