from typing import Literal

RunStateEnum = Literal["cancelled", "failed", "no_op", "queued", "running", "succeeded"]

RUN_STATE_ENUM_VALUES: set[RunStateEnum] = {
    "cancelled",
    "failed",
    "no_op",
    "queued",
    "running",
    "succeeded",
}


def check_run_state_enum(value: str) -> RunStateEnum:
    if value in RUN_STATE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {RUN_STATE_ENUM_VALUES!r}")
