from typing import Literal

SubjectEnum = Literal["aged", "end_user", "everything", "member", "session"]

SUBJECT_ENUM_VALUES: set[SubjectEnum] = {
    "aged",
    "end_user",
    "everything",
    "member",
    "session",
}


def check_subject_enum(value: str) -> SubjectEnum:
    if value in SUBJECT_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SUBJECT_ENUM_VALUES!r}")
