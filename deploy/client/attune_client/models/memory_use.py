from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="MemoryUse")


@_attrs_define
class MemoryUse:
    """What holds after the platform was asked too.

    Attributes:
        in_prompt (bool):
        budget_tokens (int):
        shadow (bool): Also false where the platform has switched it off for all.
        shadow_tokens_per_day (int):
        shadow_from_hour (int | None):
        shadow_until_hour (int | None):
    """

    in_prompt: bool
    budget_tokens: int
    shadow: bool
    shadow_tokens_per_day: int
    shadow_from_hour: int | None
    shadow_until_hour: int | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        in_prompt = self.in_prompt

        budget_tokens = self.budget_tokens

        shadow = self.shadow

        shadow_tokens_per_day = self.shadow_tokens_per_day

        shadow_from_hour: int | None
        shadow_from_hour = self.shadow_from_hour

        shadow_until_hour: int | None
        shadow_until_hour = self.shadow_until_hour

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "in_prompt": in_prompt,
                "budget_tokens": budget_tokens,
                "shadow": shadow,
                "shadow_tokens_per_day": shadow_tokens_per_day,
                "shadow_from_hour": shadow_from_hour,
                "shadow_until_hour": shadow_until_hour,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        in_prompt = d.pop("in_prompt")

        budget_tokens = d.pop("budget_tokens")

        shadow = d.pop("shadow")

        shadow_tokens_per_day = d.pop("shadow_tokens_per_day")

        def _parse_shadow_from_hour(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        shadow_from_hour = _parse_shadow_from_hour(d.pop("shadow_from_hour"))

        def _parse_shadow_until_hour(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        shadow_until_hour = _parse_shadow_until_hour(d.pop("shadow_until_hour"))

        memory_use = cls(
            in_prompt=in_prompt,
            budget_tokens=budget_tokens,
            shadow=shadow,
            shadow_tokens_per_day=shadow_tokens_per_day,
            shadow_from_hour=shadow_from_hour,
            shadow_until_hour=shadow_until_hour,
        )

        memory_use.additional_properties = d
        return memory_use

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
