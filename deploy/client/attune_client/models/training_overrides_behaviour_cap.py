from typing import Literal

TrainingOverridesBehaviourCap = Literal["mask", "truncate"]

TRAINING_OVERRIDES_BEHAVIOUR_CAP_VALUES: set[TrainingOverridesBehaviourCap] = {
    "mask",
    "truncate",
}


def check_training_overrides_behaviour_cap(value: str) -> TrainingOverridesBehaviourCap:
    if value in TRAINING_OVERRIDES_BEHAVIOUR_CAP_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {TRAINING_OVERRIDES_BEHAVIOUR_CAP_VALUES!r}"
    )
