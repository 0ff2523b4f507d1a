from typing import Literal

SessionsListKind = Literal["evaluation", "live", "rollout", "shadow"]

SESSIONS_LIST_KIND_VALUES: set[SessionsListKind] = {
    "evaluation",
    "live",
    "rollout",
    "shadow",
}


def check_sessions_list_kind(value: str) -> SessionsListKind:
    if value in SESSIONS_LIST_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SESSIONS_LIST_KIND_VALUES!r}")
