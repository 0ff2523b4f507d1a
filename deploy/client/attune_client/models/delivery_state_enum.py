from typing import Literal

DeliveryStateEnum = Literal["dead", "delivered", "pending"]

DELIVERY_STATE_ENUM_VALUES: set[DeliveryStateEnum] = {
    "dead",
    "delivered",
    "pending",
}


def check_delivery_state_enum(value: str) -> DeliveryStateEnum:
    if value in DELIVERY_STATE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {DELIVERY_STATE_ENUM_VALUES!r}")
