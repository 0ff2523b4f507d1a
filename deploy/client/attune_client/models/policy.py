from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="Policy")


@_attrs_define
class Policy:
    """What a tenant calls a model.

    Attributes:
        id (UUID):
        name (str):
        base_model (str):
        live_version (int): 0 is the bare base. Default: 0.
        temperature (float): Used where the client names none.
        training_enabled (bool):
        config (Any): Overrides of the training configuration (method, lr, batch size, staleness bound …).
        config_number (int): The row of `PolicyConfig` that `config` is a copy of.
        created_at (datetime.datetime):
    """

    id: UUID
    name: str
    base_model: str
    temperature: float
    training_enabled: bool
    config: Any
    config_number: int
    created_at: datetime.datetime
    live_version: int = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        name = self.name

        base_model = self.base_model

        live_version = self.live_version

        temperature = self.temperature

        training_enabled = self.training_enabled

        config = self.config

        config_number = self.config_number

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "name": name,
                "base_model": base_model,
                "live_version": live_version,
                "temperature": temperature,
                "training_enabled": training_enabled,
                "config": config,
                "config_number": config_number,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = UUID(d.pop("id"))

        name = d.pop("name")

        base_model = d.pop("base_model")

        live_version = d.pop("live_version")

        temperature = d.pop("temperature")

        training_enabled = d.pop("training_enabled")

        config = d.pop("config")

        config_number = d.pop("config_number")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        policy = cls(
            id=id,
            name=name,
            base_model=base_model,
            live_version=live_version,
            temperature=temperature,
            training_enabled=training_enabled,
            config=config,
            config_number=config_number,
            created_at=created_at,
        )

        policy.additional_properties = d
        return policy

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
