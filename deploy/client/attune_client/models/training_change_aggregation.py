from typing import Literal

TrainingChangeAggregation = Literal["constant", "sequence", "token"]

TRAINING_CHANGE_AGGREGATION_VALUES: set[TrainingChangeAggregation] = {
    "constant",
    "sequence",
    "token",
}


def check_training_change_aggregation(value: str) -> TrainingChangeAggregation:
    if value in TRAINING_CHANGE_AGGREGATION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CHANGE_AGGREGATION_VALUES!r}")
