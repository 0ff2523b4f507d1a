from typing import Literal

GaugeEnum = Literal["learner_deploy", "rollout_deploy", "rollout_learner"]

GAUGE_ENUM_VALUES: set[GaugeEnum] = {
    "learner_deploy",
    "rollout_deploy",
    "rollout_learner",
}


def check_gauge_enum(value: str) -> GaugeEnum:
    if value in GAUGE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {GAUGE_ENUM_VALUES!r}")
