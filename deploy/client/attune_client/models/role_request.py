from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.role_enum import RoleEnum, check_role_enum

T = TypeVar("T", bound="RoleRequest")


@_attrs_define
class RoleRequest:
    """What a member may do.

    Attributes:
        role (RoleEnum): * `owner` - Owner
            * `admin` - Admin
            * `member` - Member
            * `viewer` - Viewer
    """

    role: RoleEnum

    def to_dict(self) -> dict[str, Any]:
        role: str = self.role

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "role": role,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        role = check_role_enum(d.pop("role"))

        role_request = cls(
            role=role,
        )

        return role_request
