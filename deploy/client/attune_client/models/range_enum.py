from typing import Literal

RangeEnum = Literal["1d", "30d", "7d"]

RANGE_ENUM_VALUES: set[RangeEnum] = {
    "1d",
    "30d",
    "7d",
}


def check_range_enum(value: str) -> RangeEnum:
    if value in RANGE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {RANGE_ENUM_VALUES!r}")
