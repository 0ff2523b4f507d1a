from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="TenantRequest")


@_attrs_define
class TenantRequest:
    """A customer.

    Attributes:
        name (str | Unset):
        training_enabled (bool | Unset): Off: turns are stored, never trained on.
    """

    name: str | Unset = UNSET
    training_enabled: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        training_enabled = self.training_enabled

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if name is not UNSET:
            field_dict["name"] = name
        if training_enabled is not UNSET:
            field_dict["training_enabled"] = training_enabled

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name", UNSET)

        training_enabled = d.pop("training_enabled", UNSET)

        tenant_request = cls(
            name=name,
            training_enabled=training_enabled,
        )

        return tenant_request
