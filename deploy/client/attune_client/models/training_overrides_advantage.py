from typing import Literal

TrainingOverridesAdvantage = Literal["batch", "ema", "group", "step"]

TRAINING_OVERRIDES_ADVANTAGE_VALUES: set[TrainingOverridesAdvantage] = {
    "batch",
    "ema",
    "group",
    "step",
}


def check_training_overrides_advantage(value: str) -> TrainingOverridesAdvantage:
    if value in TRAINING_OVERRIDES_ADVANTAGE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_OVERRIDES_ADVANTAGE_VALUES!r}")
