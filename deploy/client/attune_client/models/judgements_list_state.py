from typing import Literal

JudgementsListState = Literal["failed", "pending", "settled"]

JUDGEMENTS_LIST_STATE_VALUES: set[JudgementsListState] = {
    "failed",
    "pending",
    "settled",
}


def check_judgements_list_state(value: str) -> JudgementsListState:
    if value in JUDGEMENTS_LIST_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {JUDGEMENTS_LIST_STATE_VALUES!r}")
