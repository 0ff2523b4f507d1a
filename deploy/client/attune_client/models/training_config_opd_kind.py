from typing import Literal

TrainingConfigOpdKind = Literal["full_kl", "sampled", "top_k", "top_k_select"]

TRAINING_CONFIG_OPD_KIND_VALUES: set[TrainingConfigOpdKind] = {
    "full_kl",
    "sampled",
    "top_k",
    "top_k_select",
}


def check_training_config_opd_kind(value: str) -> TrainingConfigOpdKind:
    if value in TRAINING_CONFIG_OPD_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CONFIG_OPD_KIND_VALUES!r}")
