from typing import Literal

TrainingChangePastStaleness = Literal["down_weight", "drop"]

TRAINING_CHANGE_PAST_STALENESS_VALUES: set[TrainingChangePastStaleness] = {
    "down_weight",
    "drop",
}


def check_training_change_past_staleness(value: str) -> TrainingChangePastStaleness:
    if value in TRAINING_CHANGE_PAST_STALENESS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CHANGE_PAST_STALENESS_VALUES!r}")
