from typing import Literal

ScoreEnum = Literal[-1, 0, 1]

SCORE_ENUM_VALUES: set[ScoreEnum] = {
    -1,
    0,
    1,
}


def check_score_enum(value: int) -> ScoreEnum:
    if value in SCORE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SCORE_ENUM_VALUES!r}")
