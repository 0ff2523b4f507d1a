from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="Move")


@_attrs_define
class Move:
    """A move of a policy's live pointer: from then on another version answered.

    Attributes:
        id (UUID):
        policy (UUID):
        actor (str):
        reason (str):
        created_at (datetime.datetime):
        from_version (int | Unset): 0 is the bare base. Default: 0.
        to_version (int | Unset): 0 is the bare base. Default: 0.
    """

    id: UUID
    policy: UUID
    actor: str
    reason: str
    created_at: datetime.datetime
    from_version: int | Unset = 0
    to_version: int | Unset = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        policy = str(self.policy)

        actor = self.actor

        reason = self.reason

        created_at = self.created_at.isoformat()

        from_version = self.from_version

        to_version = self.to_version

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "policy": policy,
                "actor": actor,
                "reason": reason,
                "created_at": created_at,
            }
        )
        if from_version is not UNSET:
            field_dict["from_version"] = from_version
        if to_version is not UNSET:
            field_dict["to_version"] = to_version

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = UUID(d.pop("id"))

        policy = UUID(d.pop("policy"))

        actor = d.pop("actor")

        reason = d.pop("reason")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        from_version = d.pop("from_version", UNSET)

        to_version = d.pop("to_version", UNSET)

        move = cls(
            id=id,
            policy=policy,
            actor=actor,
            reason=reason,
            created_at=created_at,
            from_version=from_version,
            to_version=to_version,
        )

        move.additional_properties = d
        return move

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
