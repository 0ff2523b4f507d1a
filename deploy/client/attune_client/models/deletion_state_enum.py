from typing import Literal

DeletionStateEnum = Literal["done", "open"]

DELETION_STATE_ENUM_VALUES: set[DeletionStateEnum] = {
    "done",
    "open",
}


def check_deletion_state_enum(value: str) -> DeletionStateEnum:
    if value in DELETION_STATE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {DELETION_STATE_ENUM_VALUES!r}")
