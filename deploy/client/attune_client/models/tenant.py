from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="Tenant")


@_attrs_define
class Tenant:
    """A customer.

    Attributes:
        id (UUID):
        slug (str):
        paused_at (datetime.datetime | None):
        pause_reason (str): The tenant reads it.
        created_at (datetime.datetime):
        name (str | Unset):
        training_enabled (bool | Unset): Off: turns are stored, never trained on.
    """

    id: UUID
    slug: str
    paused_at: datetime.datetime | None
    pause_reason: str
    created_at: datetime.datetime
    name: str | Unset = UNSET
    training_enabled: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        slug = self.slug

        paused_at: None | str
        if isinstance(self.paused_at, datetime.datetime):
            paused_at = self.paused_at.isoformat()
        else:
            paused_at = self.paused_at

        pause_reason = self.pause_reason

        created_at = self.created_at.isoformat()

        name = self.name

        training_enabled = self.training_enabled

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "slug": slug,
                "paused_at": paused_at,
                "pause_reason": pause_reason,
                "created_at": created_at,
            }
        )
        if name is not UNSET:
            field_dict["name"] = name
        if training_enabled is not UNSET:
            field_dict["training_enabled"] = training_enabled

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = UUID(d.pop("id"))

        slug = d.pop("slug")

        def _parse_paused_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                paused_at_type_0 = datetime.datetime.fromisoformat(data)

                return paused_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        paused_at = _parse_paused_at(d.pop("paused_at"))

        pause_reason = d.pop("pause_reason")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        name = d.pop("name", UNSET)

        training_enabled = d.pop("training_enabled", UNSET)

        tenant = cls(
            id=id,
            slug=slug,
            paused_at=paused_at,
            pause_reason=pause_reason,
            created_at=created_at,
            name=name,
            training_enabled=training_enabled,
        )

        tenant.additional_properties = d
        return tenant

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
