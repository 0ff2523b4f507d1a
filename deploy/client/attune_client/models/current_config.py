from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.training_config import TrainingConfig
    from ..models.training_overrides import TrainingOverrides


T = TypeVar("T", bound="CurrentConfig")


@_attrs_define
class CurrentConfig:
    """How a policy learns now.

    Attributes:
        policy (UUID):
        number (int): From 1, without gaps.
        config (TrainingOverrides):
        actor (str): Who wrote it; `system:database` where a statement named nobody.
        created_at (datetime.datetime):
        preset (str): The preset that this is, as far as presets speak of it; empty for none.
        resolved (None | TrainingConfig): Every setting and the value that holds now.
    """

    policy: UUID
    number: int
    config: TrainingOverrides
    actor: str
    created_at: datetime.datetime
    preset: str
    resolved: None | TrainingConfig
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.training_config import TrainingConfig  # noqa: PLC0415

        policy = str(self.policy)

        number = self.number

        config = self.config.to_dict()

        actor = self.actor

        created_at = self.created_at.isoformat()

        preset = self.preset

        resolved: dict[str, Any] | None
        if isinstance(self.resolved, TrainingConfig):
            resolved = self.resolved.to_dict()
        else:
            resolved = self.resolved

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "policy": policy,
                "number": number,
                "config": config,
                "actor": actor,
                "created_at": created_at,
                "preset": preset,
                "resolved": resolved,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.training_config import TrainingConfig  # noqa: PLC0415
        from ..models.training_overrides import TrainingOverrides  # noqa: PLC0415

        d = dict(src_dict)
        policy = UUID(d.pop("policy"))

        number = d.pop("number")

        config = TrainingOverrides.from_dict(d.pop("config"))

        actor = d.pop("actor")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        preset = d.pop("preset")

        def _parse_resolved(data: object) -> None | TrainingConfig:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                resolved_type_1 = TrainingConfig.from_dict(data)

                return resolved_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TrainingConfig, data)

        resolved = _parse_resolved(d.pop("resolved"))

        current_config = cls(
            policy=policy,
            number=number,
            config=config,
            actor=actor,
            created_at=created_at,
            preset=preset,
            resolved=resolved,
        )

        current_config.additional_properties = d
        return current_config

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
