from typing import Literal

WithinEnum = Literal["1d", "30d", "7d"]

WITHIN_ENUM_VALUES: set[WithinEnum] = {
    "1d",
    "30d",
    "7d",
}


def check_within_enum(value: str) -> WithinEnum:
    if value in WITHIN_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {WITHIN_ENUM_VALUES!r}")
