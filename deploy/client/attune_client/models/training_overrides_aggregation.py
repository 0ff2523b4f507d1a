from typing import Literal

TrainingOverridesAggregation = Literal["constant", "sequence", "token"]

TRAINING_OVERRIDES_AGGREGATION_VALUES: set[TrainingOverridesAggregation] = {
    "constant",
    "sequence",
    "token",
}


def check_training_overrides_aggregation(value: str) -> TrainingOverridesAggregation:
    if value in TRAINING_OVERRIDES_AGGREGATION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_OVERRIDES_AGGREGATION_VALUES!r}")
