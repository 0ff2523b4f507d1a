from typing import Literal

TrainingOverridesExploration = Literal["adapt", "off"]

TRAINING_OVERRIDES_EXPLORATION_VALUES: set[TrainingOverridesExploration] = {
    "adapt",
    "off",
}


def check_training_overrides_exploration(value: str) -> TrainingOverridesExploration:
    if value in TRAINING_OVERRIDES_EXPLORATION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_OVERRIDES_EXPLORATION_VALUES!r}")
