from typing import Literal

VersionsListState = Literal["created", "ready", "refused", "retired"]

VERSIONS_LIST_STATE_VALUES: set[VersionsListState] = {
    "created",
    "ready",
    "refused",
    "retired",
}


def check_versions_list_state(value: str) -> VersionsListState:
    if value in VERSIONS_LIST_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {VERSIONS_LIST_STATE_VALUES!r}")
