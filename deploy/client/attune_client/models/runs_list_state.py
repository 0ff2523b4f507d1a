from typing import Literal

RunsListState = Literal["cancelled", "failed", "no_op", "queued", "running", "succeeded"]

RUNS_LIST_STATE_VALUES: set[RunsListState] = {
    "cancelled",
    "failed",
    "no_op",
    "queued",
    "running",
    "succeeded",
}


def check_runs_list_state(value: str) -> RunsListState:
    if value in RUNS_LIST_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {RUNS_LIST_STATE_VALUES!r}")
