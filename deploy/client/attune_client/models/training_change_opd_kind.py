from typing import Literal

TrainingChangeOpdKind = Literal["full_kl", "sampled", "top_k", "top_k_select"]

TRAINING_CHANGE_OPD_KIND_VALUES: set[TrainingChangeOpdKind] = {
    "full_kl",
    "sampled",
    "top_k",
    "top_k_select",
}


def check_training_change_opd_kind(value: str) -> TrainingChangeOpdKind:
    if value in TRAINING_CHANGE_OPD_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CHANGE_OPD_KIND_VALUES!r}")
