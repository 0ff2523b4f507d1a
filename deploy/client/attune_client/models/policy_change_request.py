from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PolicyChangeRequest")


@_attrs_define
class PolicyChangeRequest:
    """What may be changed of a policy; what is left out stays.

    Attributes:
        temperature (float | Unset):
        training_enabled (bool | Unset):
    """

    temperature: float | Unset = UNSET
    training_enabled: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        temperature = self.temperature

        training_enabled = self.training_enabled

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if temperature is not UNSET:
            field_dict["temperature"] = temperature
        if training_enabled is not UNSET:
            field_dict["training_enabled"] = training_enabled

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        temperature = d.pop("temperature", UNSET)

        training_enabled = d.pop("training_enabled", UNSET)

        policy_change_request = cls(
            temperature=temperature,
            training_enabled=training_enabled,
        )

        return policy_change_request
