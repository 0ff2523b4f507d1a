from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="Rubric")


@_attrs_define
class Rubric:
    """What replies are judged by. Never changed: the newest of a policy, else of the tenant, counts.

    Attributes:
        id (UUID):
        number (int): From 1, counted per tenant.
        policy (None | UUID): null: all of them.
        text (str):
        actor (str): Who wrote it: user:<id> or key:<public id>.
        created_at (datetime.datetime):
    """

    id: UUID
    number: int
    policy: None | UUID
    text: str
    actor: str
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        number = self.number

        policy: None | str
        if isinstance(self.policy, UUID):
            policy = str(self.policy)
        else:
            policy = self.policy

        text = self.text

        actor = self.actor

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "number": number,
                "policy": policy,
                "text": text,
                "actor": actor,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = UUID(d.pop("id"))

        number = d.pop("number")

        def _parse_policy(data: object) -> None | UUID:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                policy_type_0 = UUID(data)

                return policy_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | UUID, data)

        policy = _parse_policy(d.pop("policy"))

        text = d.pop("text")

        actor = d.pop("actor")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        rubric = cls(
            id=id,
            number=number,
            policy=policy,
            text=text,
            actor=actor,
            created_at=created_at,
        )

        rubric.additional_properties = d
        return rubric

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
