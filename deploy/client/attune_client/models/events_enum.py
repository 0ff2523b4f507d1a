from typing import Literal

EventsEnum = Literal[
    "drift.crossed",
    "endpoint.disabled",
    "policy.paused",
    "policy.resumed",
    "run.failed",
    "version.live",
    "version.refused",
]

EVENTS_ENUM_VALUES: set[EventsEnum] = {
    "drift.crossed",
    "endpoint.disabled",
    "policy.paused",
    "policy.resumed",
    "run.failed",
    "version.live",
    "version.refused",
}


def check_events_enum(value: str) -> EventsEnum:
    if value in EVENTS_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {EVENTS_ENUM_VALUES!r}")
