from typing import Literal

EventEnum = Literal[
    "drift.crossed",
    "endpoint.disabled",
    "endpoint.test",
    "policy.paused",
    "policy.resumed",
    "run.failed",
    "version.live",
    "version.refused",
]

EVENT_ENUM_VALUES: set[EventEnum] = {
    "drift.crossed",
    "endpoint.disabled",
    "endpoint.test",
    "policy.paused",
    "policy.resumed",
    "run.failed",
    "version.live",
    "version.refused",
}


def check_event_enum(value: str) -> EventEnum:
    if value in EVENT_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {EVENT_ENUM_VALUES!r}")
