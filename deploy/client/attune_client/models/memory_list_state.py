from typing import Literal

MemoryListState = Literal["active", "learned", "superseded"]

MEMORY_LIST_STATE_VALUES: set[MemoryListState] = {
    "active",
    "learned",
    "superseded",
}


def check_memory_list_state(value: str) -> MemoryListState:
    if value in MEMORY_LIST_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MEMORY_LIST_STATE_VALUES!r}")
