from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="MemorySettingRequest")


@_attrs_define
class MemorySettingRequest:
    """How a policy uses memory; null is as the platform has it, what is left out stays.

    Attributes:
        in_prompt (bool | Unset): Whether its model is told what people asked for.
        budget_tokens (int | None | Unset): The most that this takes of a prompt.
        shadow (bool | Unset): Whether its weights take that over in quiet minutes.
        shadow_tokens_per_day (int | None | Unset): The most that is written for it in 24 hours.
        shadow_from_hour (int | None | Unset): It begins at this hour, UTC; null, with the other one: at any.
        shadow_until_hour (int | None | Unset): … and ends at this one; before the first: on the next day.
    """

    in_prompt: bool | Unset = UNSET
    budget_tokens: int | None | Unset = UNSET
    shadow: bool | Unset = UNSET
    shadow_tokens_per_day: int | None | Unset = UNSET
    shadow_from_hour: int | None | Unset = UNSET
    shadow_until_hour: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        in_prompt = self.in_prompt

        budget_tokens: int | None | Unset
        if isinstance(self.budget_tokens, Unset):
            budget_tokens = UNSET
        else:
            budget_tokens = self.budget_tokens

        shadow = self.shadow

        shadow_tokens_per_day: int | None | Unset
        if isinstance(self.shadow_tokens_per_day, Unset):
            shadow_tokens_per_day = UNSET
        else:
            shadow_tokens_per_day = self.shadow_tokens_per_day

        shadow_from_hour: int | None | Unset
        if isinstance(self.shadow_from_hour, Unset):
            shadow_from_hour = UNSET
        else:
            shadow_from_hour = self.shadow_from_hour

        shadow_until_hour: int | None | Unset
        if isinstance(self.shadow_until_hour, Unset):
            shadow_until_hour = UNSET
        else:
            shadow_until_hour = self.shadow_until_hour

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if in_prompt is not UNSET:
            field_dict["in_prompt"] = in_prompt
        if budget_tokens is not UNSET:
            field_dict["budget_tokens"] = budget_tokens
        if shadow is not UNSET:
            field_dict["shadow"] = shadow
        if shadow_tokens_per_day is not UNSET:
            field_dict["shadow_tokens_per_day"] = shadow_tokens_per_day
        if shadow_from_hour is not UNSET:
            field_dict["shadow_from_hour"] = shadow_from_hour
        if shadow_until_hour is not UNSET:
            field_dict["shadow_until_hour"] = shadow_until_hour

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        in_prompt = d.pop("in_prompt", UNSET)

        def _parse_budget_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        budget_tokens = _parse_budget_tokens(d.pop("budget_tokens", UNSET))

        shadow = d.pop("shadow", UNSET)

        def _parse_shadow_tokens_per_day(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        shadow_tokens_per_day = _parse_shadow_tokens_per_day(d.pop("shadow_tokens_per_day", UNSET))

        def _parse_shadow_from_hour(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        shadow_from_hour = _parse_shadow_from_hour(d.pop("shadow_from_hour", UNSET))

        def _parse_shadow_until_hour(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        shadow_until_hour = _parse_shadow_until_hour(d.pop("shadow_until_hour", UNSET))

        memory_setting_request = cls(
            in_prompt=in_prompt,
            budget_tokens=budget_tokens,
            shadow=shadow,
            shadow_tokens_per_day=shadow_tokens_per_day,
            shadow_from_hour=shadow_from_hour,
            shadow_until_hour=shadow_until_hour,
        )

        return memory_setting_request
