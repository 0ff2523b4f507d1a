from typing import Literal

TurnsListState = Literal["aborted", "complete", "failed", "pending"]

TURNS_LIST_STATE_VALUES: set[TurnsListState] = {
    "aborted",
    "complete",
    "failed",
    "pending",
}


def check_turns_list_state(value: str) -> TurnsListState:
    if value in TURNS_LIST_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TURNS_LIST_STATE_VALUES!r}")
