from typing import Literal

TrainingConfigExploration = Literal["adapt", "off"]

TRAINING_CONFIG_EXPLORATION_VALUES: set[TrainingConfigExploration] = {
    "adapt",
    "off",
}


def check_training_config_exploration(value: str) -> TrainingConfigExploration:
    if value in TRAINING_CONFIG_EXPLORATION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CONFIG_EXPLORATION_VALUES!r}")
