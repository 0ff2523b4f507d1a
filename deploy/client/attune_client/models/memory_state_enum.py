from typing import Literal

MemoryStateEnum = Literal["active", "learned", "superseded"]

MEMORY_STATE_ENUM_VALUES: set[MemoryStateEnum] = {
    "active",
    "learned",
    "superseded",
}


def check_memory_state_enum(value: str) -> MemoryStateEnum:
    if value in MEMORY_STATE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MEMORY_STATE_ENUM_VALUES!r}")
