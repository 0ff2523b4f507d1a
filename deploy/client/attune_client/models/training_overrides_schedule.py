from typing import Literal

TrainingOverridesSchedule = Literal["constant", "cosine", "linear"]

TRAINING_OVERRIDES_SCHEDULE_VALUES: set[TrainingOverridesSchedule] = {
    "constant",
    "cosine",
    "linear",
}


def check_training_overrides_schedule(value: str) -> TrainingOverridesSchedule:
    if value in TRAINING_OVERRIDES_SCHEDULE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_OVERRIDES_SCHEDULE_VALUES!r}")
