from typing import Literal

DriftReadingsListGauge = Literal["learner_deploy", "rollout_deploy", "rollout_learner"]

DRIFT_READINGS_LIST_GAUGE_VALUES: set[DriftReadingsListGauge] = {
    "learner_deploy",
    "rollout_deploy",
    "rollout_learner",
}


def check_drift_readings_list_gauge(value: str) -> DriftReadingsListGauge:
    if value in DRIFT_READINGS_LIST_GAUGE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {DRIFT_READINGS_LIST_GAUGE_VALUES!r}")
