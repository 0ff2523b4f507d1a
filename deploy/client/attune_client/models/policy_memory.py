from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.memory_setting import MemorySetting
    from ..models.memory_use import MemoryUse


T = TypeVar("T", bound="PolicyMemory")


@_attrs_define
class PolicyMemory:
    """A policy's own setting of memory, and what holds.

    Attributes:
        own (MemorySetting): How a policy uses memory; null is as the platform has it, what is left out stays.
        holds (MemoryUse): What holds after the platform was asked too.
    """

    own: MemorySetting
    holds: MemoryUse
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        own = self.own.to_dict()

        holds = self.holds.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "own": own,
                "holds": holds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.memory_setting import MemorySetting  # noqa: PLC0415
        from ..models.memory_use import MemoryUse  # noqa: PLC0415

        d = dict(src_dict)
        own = MemorySetting.from_dict(d.pop("own"))

        holds = MemoryUse.from_dict(d.pop("holds"))

        policy_memory = cls(
            own=own,
            holds=holds,
        )

        policy_memory.additional_properties = d
        return policy_memory

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
