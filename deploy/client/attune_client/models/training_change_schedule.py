from typing import Literal

TrainingChangeSchedule = Literal["constant", "cosine", "linear"]

TRAINING_CHANGE_SCHEDULE_VALUES: set[TrainingChangeSchedule] = {
    "constant",
    "cosine",
    "linear",
}


def check_training_change_schedule(value: str) -> TrainingChangeSchedule:
    if value in TRAINING_CHANGE_SCHEDULE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CHANGE_SCHEDULE_VALUES!r}")
