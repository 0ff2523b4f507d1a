from typing import Literal

TrainingConfigAggregation = Literal["constant", "sequence", "token"]

TRAINING_CONFIG_AGGREGATION_VALUES: set[TrainingConfigAggregation] = {
    "constant",
    "sequence",
    "token",
}


def check_training_config_aggregation(value: str) -> TrainingConfigAggregation:
    if value in TRAINING_CONFIG_AGGREGATION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CONFIG_AGGREGATION_VALUES!r}")
