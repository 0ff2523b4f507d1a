from typing import Literal

TrainingOverridesPastStaleness = Literal["down_weight", "drop"]

TRAINING_OVERRIDES_PAST_STALENESS_VALUES: set[TrainingOverridesPastStaleness] = {
    "down_weight",
    "drop",
}


def check_training_overrides_past_staleness(value: str) -> TrainingOverridesPastStaleness:
    if value in TRAINING_OVERRIDES_PAST_STALENESS_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {TRAINING_OVERRIDES_PAST_STALENESS_VALUES!r}"
    )
