from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.view_filters_request import ViewFiltersRequest


T = TypeVar("T", bound="ViewChangeRequest")


@_attrs_define
class ViewChangeRequest:
    """What may be changed of a view; what is left out stays.

    Attributes:
        name (str | Unset):
        filters (ViewFiltersRequest | Unset): What a view narrows the list to; at least one of these.
        shared (bool | Unset): Only who made a view takes it back.
    """

    name: str | Unset = UNSET
    filters: ViewFiltersRequest | Unset = UNSET
    shared: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        filters: dict[str, Any] | Unset = UNSET
        if not isinstance(self.filters, Unset):
            filters = self.filters.to_dict()

        shared = self.shared

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if name is not UNSET:
            field_dict["name"] = name
        if filters is not UNSET:
            field_dict["filters"] = filters
        if shared is not UNSET:
            field_dict["shared"] = shared

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.view_filters_request import ViewFiltersRequest  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name", UNSET)

        _filters = d.pop("filters", UNSET)
        filters: ViewFiltersRequest | Unset
        if isinstance(_filters, Unset):
            filters = UNSET
        else:
            filters = ViewFiltersRequest.from_dict(_filters)

        shared = d.pop("shared", UNSET)

        view_change_request = cls(
            name=name,
            filters=filters,
            shared=shared,
        )

        return view_change_request
