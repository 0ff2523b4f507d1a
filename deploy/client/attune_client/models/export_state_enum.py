from typing import Literal

ExportStateEnum = Literal["expired", "failed", "queued", "ready", "running"]

EXPORT_STATE_ENUM_VALUES: set[ExportStateEnum] = {
    "expired",
    "failed",
    "queued",
    "ready",
    "running",
}


def check_export_state_enum(value: str) -> ExportStateEnum:
    if value in EXPORT_STATE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {EXPORT_STATE_ENUM_VALUES!r}")
