from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.view_filters import ViewFilters


T = TypeVar("T", bound="View")


@_attrs_define
class View:
    """Filters of the sessions' list under a name.

    Attributes:
        id (UUID):
        name (str):
        user (UUID): Who made it.
        shared (bool): For everybody who sees sessions; else its maker's own.
        filters (ViewFilters): What a view narrows the list to; at least one of these.
        created_at (datetime.datetime):
    """

    id: UUID
    name: str
    user: UUID
    shared: bool
    filters: ViewFilters
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        name = self.name

        user = str(self.user)

        shared = self.shared

        filters = self.filters.to_dict()

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "name": name,
                "user": user,
                "shared": shared,
                "filters": filters,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.view_filters import ViewFilters  # noqa: PLC0415

        d = dict(src_dict)
        id = UUID(d.pop("id"))

        name = d.pop("name")

        user = UUID(d.pop("user"))

        shared = d.pop("shared")

        filters = ViewFilters.from_dict(d.pop("filters"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        view = cls(
            id=id,
            name=name,
            user=user,
            shared=shared,
            filters=filters,
            created_at=created_at,
        )

        view.additional_properties = d
        return view

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
