from typing import Literal

TurnStateEnum = Literal["aborted", "complete", "failed", "pending"]

TURN_STATE_ENUM_VALUES: set[TurnStateEnum] = {
    "aborted",
    "complete",
    "failed",
    "pending",
}


def check_turn_state_enum(value: str) -> TurnStateEnum:
    if value in TURN_STATE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TURN_STATE_ENUM_VALUES!r}")
