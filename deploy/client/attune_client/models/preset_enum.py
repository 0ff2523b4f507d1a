from typing import Literal

PresetEnum = Literal["gentle", "quick", "standard"]

PRESET_ENUM_VALUES: set[PresetEnum] = {
    "gentle",
    "quick",
    "standard",
}


def check_preset_enum(value: str) -> PresetEnum:
    if value in PRESET_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PRESET_ENUM_VALUES!r}")
