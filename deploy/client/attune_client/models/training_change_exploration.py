from typing import Literal

TrainingChangeExploration = Literal["adapt", "off"]

TRAINING_CHANGE_EXPLORATION_VALUES: set[TrainingChangeExploration] = {
    "adapt",
    "off",
}


def check_training_change_exploration(value: str) -> TrainingChangeExploration:
    if value in TRAINING_CHANGE_EXPLORATION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CHANGE_EXPLORATION_VALUES!r}")
