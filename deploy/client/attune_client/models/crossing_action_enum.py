from typing import Literal

CrossingActionEnum = Literal["alert", "fall_back", "pause"]

CROSSING_ACTION_ENUM_VALUES: set[CrossingActionEnum] = {
    "alert",
    "fall_back",
    "pause",
}


def check_crossing_action_enum(value: str) -> CrossingActionEnum:
    if value in CROSSING_ACTION_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CROSSING_ACTION_ENUM_VALUES!r}")
