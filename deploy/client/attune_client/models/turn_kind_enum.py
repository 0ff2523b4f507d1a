from typing import Literal

TurnKindEnum = Literal["evaluation", "live", "rollout", "shadow"]

TURN_KIND_ENUM_VALUES: set[TurnKindEnum] = {
    "evaluation",
    "live",
    "rollout",
    "shadow",
}


def check_turn_kind_enum(value: str) -> TurnKindEnum:
    if value in TURN_KIND_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TURN_KIND_ENUM_VALUES!r}")
