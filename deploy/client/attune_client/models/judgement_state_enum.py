from typing import Literal

JudgementStateEnum = Literal["failed", "pending", "settled"]

JUDGEMENT_STATE_ENUM_VALUES: set[JudgementStateEnum] = {
    "failed",
    "pending",
    "settled",
}


def check_judgement_state_enum(value: str) -> JudgementStateEnum:
    if value in JUDGEMENT_STATE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {JUDGEMENT_STATE_ENUM_VALUES!r}")
