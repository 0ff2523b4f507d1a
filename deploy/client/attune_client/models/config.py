from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.training_overrides import TrainingOverrides


T = TypeVar("T", bound="Config")


@_attrs_define
class Config:
    """One configuration of a policy.

    Attributes:
        policy (UUID):
        number (int): From 1, without gaps.
        config (TrainingOverrides):
        actor (str): Who wrote it; `system:database` where a statement named nobody.
        created_at (datetime.datetime):
    """

    policy: UUID
    number: int
    config: TrainingOverrides
    actor: str
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        policy = str(self.policy)

        number = self.number

        config = self.config.to_dict()

        actor = self.actor

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "policy": policy,
                "number": number,
                "config": config,
                "actor": actor,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.training_overrides import TrainingOverrides  # noqa: PLC0415

        d = dict(src_dict)
        policy = UUID(d.pop("policy"))

        number = d.pop("number")

        config = TrainingOverrides.from_dict(d.pop("config"))

        actor = d.pop("actor")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        config = cls(
            policy=policy,
            number=number,
            config=config,
            actor=actor,
            created_at=created_at,
        )

        config.additional_properties = d
        return config

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
