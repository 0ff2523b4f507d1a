from typing import Literal

SampleStateEnum = Literal["claimed", "consumed", "dropped", "ineligible", "ready"]

SAMPLE_STATE_ENUM_VALUES: set[SampleStateEnum] = {
    "claimed",
    "consumed",
    "dropped",
    "ineligible",
    "ready",
}


def check_sample_state_enum(value: str) -> SampleStateEnum:
    if value in SAMPLE_STATE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SAMPLE_STATE_ENUM_VALUES!r}")
