from typing import Literal

TurnsListKind = Literal["evaluation", "live", "rollout", "shadow"]

TURNS_LIST_KIND_VALUES: set[TurnsListKind] = {
    "evaluation",
    "live",
    "rollout",
    "shadow",
}


def check_turns_list_kind(value: str) -> TurnsListKind:
    if value in TURNS_LIST_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TURNS_LIST_KIND_VALUES!r}")
