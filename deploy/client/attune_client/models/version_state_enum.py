from typing import Literal

VersionStateEnum = Literal["created", "ready", "refused", "retired"]

VERSION_STATE_ENUM_VALUES: set[VersionStateEnum] = {
    "created",
    "ready",
    "refused",
    "retired",
}


def check_version_state_enum(value: str) -> VersionStateEnum:
    if value in VERSION_STATE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {VERSION_STATE_ENUM_VALUES!r}")
