from typing import Literal

PromptSourceEnum = Literal["extended", "first", "rendered"]

PROMPT_SOURCE_ENUM_VALUES: set[PromptSourceEnum] = {
    "extended",
    "first",
    "rendered",
}


def check_prompt_source_enum(value: str) -> PromptSourceEnum:
    if value in PROMPT_SOURCE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PROMPT_SOURCE_ENUM_VALUES!r}")
