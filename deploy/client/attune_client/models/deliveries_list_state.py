from typing import Literal

DeliveriesListState = Literal["dead", "delivered", "pending"]

DELIVERIES_LIST_STATE_VALUES: set[DeliveriesListState] = {
    "dead",
    "delivered",
    "pending",
}


def check_deliveries_list_state(value: str) -> DeliveriesListState:
    if value in DELIVERIES_LIST_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {DELIVERIES_LIST_STATE_VALUES!r}")
