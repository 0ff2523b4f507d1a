from typing import Literal

SamplesListState = Literal["claimed", "consumed", "dropped", "ineligible", "ready"]

SAMPLES_LIST_STATE_VALUES: set[SamplesListState] = {
    "claimed",
    "consumed",
    "dropped",
    "ineligible",
    "ready",
}


def check_samples_list_state(value: str) -> SamplesListState:
    if value in SAMPLES_LIST_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SAMPLES_LIST_STATE_VALUES!r}")
