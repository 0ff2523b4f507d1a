from typing import Literal

TrainingConfigBehaviourCap = Literal["mask", "truncate"]

TRAINING_CONFIG_BEHAVIOUR_CAP_VALUES: set[TrainingConfigBehaviourCap] = {
    "mask",
    "truncate",
}


def check_training_config_behaviour_cap(value: str) -> TrainingConfigBehaviourCap:
    if value in TRAINING_CONFIG_BEHAVIOUR_CAP_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CONFIG_BEHAVIOUR_CAP_VALUES!r}")
