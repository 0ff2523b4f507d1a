from typing import Literal

TrainingChangeBehaviourCap = Literal["mask", "truncate"]

TRAINING_CHANGE_BEHAVIOUR_CAP_VALUES: set[TrainingChangeBehaviourCap] = {
    "mask",
    "truncate",
}


def check_training_change_behaviour_cap(value: str) -> TrainingChangeBehaviourCap:
    if value in TRAINING_CHANGE_BEHAVIOUR_CAP_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CHANGE_BEHAVIOUR_CAP_VALUES!r}")
