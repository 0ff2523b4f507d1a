from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.role_enum import RoleEnum, check_role_enum

T = TypeVar("T", bound="NewInvitationRequest")


@_attrs_define
class NewInvitationRequest:
    """Who is to be asked, and what they may do then.

    Attributes:
        email (str):
        role (RoleEnum): * `owner` - Owner
            * `admin` - Admin
            * `member` - Member
            * `viewer` - Viewer
    """

    email: str
    role: RoleEnum

    def to_dict(self) -> dict[str, Any]:
        email = self.email

        role: str = self.role

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "email": email,
                "role": role,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        email = d.pop("email")

        role = check_role_enum(d.pop("role"))

        new_invitation_request = cls(
            email=email,
            role=role,
        )

        return new_invitation_request
