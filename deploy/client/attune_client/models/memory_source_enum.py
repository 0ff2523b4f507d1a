from typing import Literal

MemorySourceEnum = Literal["correction", "hint", "typed"]

MEMORY_SOURCE_ENUM_VALUES: set[MemorySourceEnum] = {
    "correction",
    "hint",
    "typed",
}


def check_memory_source_enum(value: str) -> MemorySourceEnum:
    if value in MEMORY_SOURCE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MEMORY_SOURCE_ENUM_VALUES!r}")
