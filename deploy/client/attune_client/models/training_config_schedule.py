from typing import Literal

TrainingConfigSchedule = Literal["constant", "cosine", "linear"]

TRAINING_CONFIG_SCHEDULE_VALUES: set[TrainingConfigSchedule] = {
    "constant",
    "cosine",
    "linear",
}


def check_training_config_schedule(value: str) -> TrainingConfigSchedule:
    if value in TRAINING_CONFIG_SCHEDULE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CONFIG_SCHEDULE_VALUES!r}")
