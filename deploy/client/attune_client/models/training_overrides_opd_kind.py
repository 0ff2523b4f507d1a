from typing import Literal

TrainingOverridesOpdKind = Literal["full_kl", "sampled", "top_k", "top_k_select"]

TRAINING_OVERRIDES_OPD_KIND_VALUES: set[TrainingOverridesOpdKind] = {
    "full_kl",
    "sampled",
    "top_k",
    "top_k_select",
}


def check_training_overrides_opd_kind(value: str) -> TrainingOverridesOpdKind:
    if value in TRAINING_OVERRIDES_OPD_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_OVERRIDES_OPD_KIND_VALUES!r}")
