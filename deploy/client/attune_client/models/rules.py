from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.personal_data_enum import PersonalDataEnum, check_personal_data_enum

T = TypeVar("T", bound="Rules")


@_attrs_define
class Rules:
    """What holds after every level was asked.

    Attributes:
        votes (int):
        temperature (float):
        daily_tokens (int):
        personal_data (PersonalDataEnum): * `off` - Off
            * `redact` - Redact
            * `drop` - Drop
        rubric (str): Its text; empty: the built-in one.
    """

    votes: int
    temperature: float
    daily_tokens: int
    personal_data: PersonalDataEnum
    rubric: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        votes = self.votes

        temperature = self.temperature

        daily_tokens = self.daily_tokens

        personal_data: str = self.personal_data

        rubric = self.rubric

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "votes": votes,
                "temperature": temperature,
                "daily_tokens": daily_tokens,
                "personal_data": personal_data,
                "rubric": rubric,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        votes = d.pop("votes")

        temperature = d.pop("temperature")

        daily_tokens = d.pop("daily_tokens")

        personal_data = check_personal_data_enum(d.pop("personal_data"))

        rubric = d.pop("rubric")

        rules = cls(
            votes=votes,
            temperature=temperature,
            daily_tokens=daily_tokens,
            personal_data=personal_data,
            rubric=rubric,
        )

        rules.additional_properties = d
        return rules

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
