from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.role_enum import RoleEnum, check_role_enum

T = TypeVar("T", bound="Invitation")


@_attrs_define
class Invitation:
    """Somebody who was asked to join and has not yet. The link stands in their mail alone.

    Attributes:
        id (UUID):
        email (str):
        role (RoleEnum): * `owner` - Owner
            * `admin` - Admin
            * `member` - Member
            * `viewer` - Viewer
        inviter (UUID):
        stands (bool): Whether its inviter may still ask somebody in as that.
        created_at (datetime.datetime):
        expires_at (datetime.datetime):
    """

    id: UUID
    email: str
    role: RoleEnum
    inviter: UUID
    stands: bool
    created_at: datetime.datetime
    expires_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        email = self.email

        role: str = self.role

        inviter = str(self.inviter)

        stands = self.stands

        created_at = self.created_at.isoformat()

        expires_at = self.expires_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "email": email,
                "role": role,
                "inviter": inviter,
                "stands": stands,
                "created_at": created_at,
                "expires_at": expires_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = UUID(d.pop("id"))

        email = d.pop("email")

        role = check_role_enum(d.pop("role"))

        inviter = UUID(d.pop("inviter"))

        stands = d.pop("stands")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        expires_at = datetime.datetime.fromisoformat(d.pop("expires_at"))

        invitation = cls(
            id=id,
            email=email,
            role=role,
            inviter=inviter,
            stands=stands,
            created_at=created_at,
            expires_at=expires_at,
        )

        invitation.additional_properties = d
        return invitation

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
