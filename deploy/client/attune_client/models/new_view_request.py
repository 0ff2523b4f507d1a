from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.view_filters_request import ViewFiltersRequest


T = TypeVar("T", bound="NewViewRequest")


@_attrs_define
class NewViewRequest:
    """A view to be saved.

    Attributes:
        name (str):
        filters (ViewFiltersRequest): What a view narrows the list to; at least one of these.
        shared (bool | Unset): For owners and admins. Default: False.
    """

    name: str
    filters: ViewFiltersRequest
    shared: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        filters = self.filters.to_dict()

        shared = self.shared

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "filters": filters,
            }
        )
        if shared is not UNSET:
            field_dict["shared"] = shared

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.view_filters_request import ViewFiltersRequest  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        filters = ViewFiltersRequest.from_dict(d.pop("filters"))

        shared = d.pop("shared", UNSET)

        new_view_request = cls(
            name=name,
            filters=filters,
            shared=shared,
        )

        return new_view_request
