from typing import Literal

JudgementSourceEnum = Literal["judge", "override"]

JUDGEMENT_SOURCE_ENUM_VALUES: set[JudgementSourceEnum] = {
    "judge",
    "override",
}


def check_judgement_source_enum(value: str) -> JudgementSourceEnum:
    if value in JUDGEMENT_SOURCE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {JUDGEMENT_SOURCE_ENUM_VALUES!r}")
