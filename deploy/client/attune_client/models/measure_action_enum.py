from typing import Literal

MeasureActionEnum = Literal["alert", "fall_back", "pause"]

MEASURE_ACTION_ENUM_VALUES: set[MeasureActionEnum] = {
    "alert",
    "fall_back",
    "pause",
}


def check_measure_action_enum(value: str) -> MeasureActionEnum:
    if value in MEASURE_ACTION_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MEASURE_ACTION_ENUM_VALUES!r}")
