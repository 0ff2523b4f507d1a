from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="LearnedFrom")


@_attrs_define
class LearnedFrom:
    """A version that had learned from what a deletion took: the rows are gone, the version is not.

    Attributes:
        policy (UUID):
        version (UUID):
        number (int):
        served_name (str):
        samples (int):
    """

    policy: UUID
    version: UUID
    number: int
    served_name: str
    samples: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        policy = str(self.policy)

        version = str(self.version)

        number = self.number

        served_name = self.served_name

        samples = self.samples

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "policy": policy,
                "version": version,
                "number": number,
                "served_name": served_name,
                "samples": samples,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        policy = UUID(d.pop("policy"))

        version = UUID(d.pop("version"))

        number = d.pop("number")

        served_name = d.pop("served_name")

        samples = d.pop("samples")

        learned_from = cls(
            policy=policy,
            version=version,
            number=number,
            served_name=served_name,
            samples=samples,
        )

        learned_from.additional_properties = d
        return learned_from

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
