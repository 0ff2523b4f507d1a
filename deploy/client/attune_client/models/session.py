from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.turn_kind_enum import TurnKindEnum, check_turn_kind_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="Session")


@_attrs_define
class Session:
    """A conversation.

    Attributes:
        id (UUID):
        external_id (None | str): The id the client gave, if any.
        user (UUID):
        policy (UUID):
        kind (TurnKindEnum): * `live` - Live
            * `rollout` - Rollout
            * `shadow` - Shadow
            * `evaluation` - Evaluation
        turns (int):
        created_at (datetime.datetime):
        last_turn_at (datetime.datetime | None):
        idle_at (datetime.datetime | None): When it was taken to be over.
        end_user (None | str | Unset): OpenAI's `user`.
    """

    id: UUID
    external_id: None | str
    user: UUID
    policy: UUID
    kind: TurnKindEnum
    turns: int
    created_at: datetime.datetime
    last_turn_at: datetime.datetime | None
    idle_at: datetime.datetime | None
    end_user: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        external_id: None | str
        external_id = self.external_id

        user = str(self.user)

        policy = str(self.policy)

        kind: str = self.kind

        turns = self.turns

        created_at = self.created_at.isoformat()

        last_turn_at: None | str
        if isinstance(self.last_turn_at, datetime.datetime):
            last_turn_at = self.last_turn_at.isoformat()
        else:
            last_turn_at = self.last_turn_at

        idle_at: None | str
        if isinstance(self.idle_at, datetime.datetime):
            idle_at = self.idle_at.isoformat()
        else:
            idle_at = self.idle_at

        end_user: None | str | Unset
        if isinstance(self.end_user, Unset):
            end_user = UNSET
        else:
            end_user = self.end_user

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "external_id": external_id,
                "user": user,
                "policy": policy,
                "kind": kind,
                "turns": turns,
                "created_at": created_at,
                "last_turn_at": last_turn_at,
                "idle_at": idle_at,
            }
        )
        if end_user is not UNSET:
            field_dict["end_user"] = end_user

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = UUID(d.pop("id"))

        def _parse_external_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        external_id = _parse_external_id(d.pop("external_id"))

        user = UUID(d.pop("user"))

        policy = UUID(d.pop("policy"))

        kind = check_turn_kind_enum(d.pop("kind"))

        turns = d.pop("turns")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_last_turn_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_turn_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_turn_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_turn_at = _parse_last_turn_at(d.pop("last_turn_at"))

        def _parse_idle_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                idle_at_type_0 = datetime.datetime.fromisoformat(data)

                return idle_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        idle_at = _parse_idle_at(d.pop("idle_at"))

        def _parse_end_user(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        end_user = _parse_end_user(d.pop("end_user", UNSET))

        session = cls(
            id=id,
            external_id=external_id,
            user=user,
            policy=policy,
            kind=kind,
            turns=turns,
            created_at=created_at,
            last_turn_at=last_turn_at,
            idle_at=idle_at,
            end_user=end_user,
        )

        session.additional_properties = d
        return session

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
