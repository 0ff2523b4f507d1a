from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.personal_data_enum import PersonalDataEnum, check_personal_data_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="JudgeSettings")


@_attrs_define
class JudgeSettings:
    """How turns are judged; null is as one level above, what is left out stays.

    Attributes:
        votes (int | None | Unset): Votes of a judgement.
        temperature (float | None | Unset): Of the judge model.
        personal_data (None | PersonalDataEnum | Unset): What is done where personal data is found: nothing, judges and
            training never see it, or the turn is not trained on.

            * `off` - Off
            * `redact` - Redact
            * `drop` - Drop
    """

    votes: int | None | Unset = UNSET
    temperature: float | None | Unset = UNSET
    personal_data: None | PersonalDataEnum | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        votes: int | None | Unset
        if isinstance(self.votes, Unset):
            votes = UNSET
        else:
            votes = self.votes

        temperature: float | None | Unset
        if isinstance(self.temperature, Unset):
            temperature = UNSET
        else:
            temperature = self.temperature

        personal_data: None | str | Unset
        if isinstance(self.personal_data, Unset):
            personal_data = UNSET
        elif isinstance(self.personal_data, str):
            personal_data = self.personal_data
        else:
            personal_data = self.personal_data

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if votes is not UNSET:
            field_dict["votes"] = votes
        if temperature is not UNSET:
            field_dict["temperature"] = temperature
        if personal_data is not UNSET:
            field_dict["personal_data"] = personal_data

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_votes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        votes = _parse_votes(d.pop("votes", UNSET))

        def _parse_temperature(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        temperature = _parse_temperature(d.pop("temperature", UNSET))

        def _parse_personal_data(data: object) -> None | PersonalDataEnum | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                personal_data_type_0 = check_personal_data_enum(data)

                return personal_data_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PersonalDataEnum | Unset, data)

        personal_data = _parse_personal_data(d.pop("personal_data", UNSET))

        judge_settings = cls(
            votes=votes,
            temperature=temperature,
            personal_data=personal_data,
        )

        judge_settings.additional_properties = d
        return judge_settings

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
