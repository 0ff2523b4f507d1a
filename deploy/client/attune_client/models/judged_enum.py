from typing import Literal

JudgedEnum = Literal["bad", "good"]

JUDGED_ENUM_VALUES: set[JudgedEnum] = {
    "bad",
    "good",
}


def check_judged_enum(value: str) -> JudgedEnum:
    if value in JUDGED_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {JUDGED_ENUM_VALUES!r}")
