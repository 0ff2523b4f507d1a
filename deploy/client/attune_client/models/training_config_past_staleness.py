from typing import Literal

TrainingConfigPastStaleness = Literal["down_weight", "drop"]

TRAINING_CONFIG_PAST_STALENESS_VALUES: set[TrainingConfigPastStaleness] = {
    "down_weight",
    "drop",
}


def check_training_config_past_staleness(value: str) -> TrainingConfigPastStaleness:
    if value in TRAINING_CONFIG_PAST_STALENESS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CONFIG_PAST_STALENESS_VALUES!r}")
