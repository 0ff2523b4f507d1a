from typing import Literal

ScopesEnum = Literal["chat", "evaluate", "manage", "read", "rollout"]

SCOPES_ENUM_VALUES: set[ScopesEnum] = {
    "chat",
    "evaluate",
    "manage",
    "read",
    "rollout",
}


def check_scopes_enum(value: str) -> ScopesEnum:
    if value in SCOPES_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SCOPES_ENUM_VALUES!r}")
