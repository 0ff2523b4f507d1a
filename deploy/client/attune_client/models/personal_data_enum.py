from typing import Literal

PersonalDataEnum = Literal["drop", "off", "redact"]

PERSONAL_DATA_ENUM_VALUES: set[PersonalDataEnum] = {
    "drop",
    "off",
    "redact",
}


def check_personal_data_enum(value: str) -> PersonalDataEnum:
    if value in PERSONAL_DATA_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PERSONAL_DATA_ENUM_VALUES!r}")
