from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.training_overrides import TrainingOverrides


T = TypeVar("T", bound="Preset")


@_attrs_define
class Preset:
    """A few numbers that belong together.

    Attributes:
        name (str):
        about (str): For whom it is.
        config (TrainingOverrides):
    """

    name: str
    about: str
    config: TrainingOverrides
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        about = self.about

        config = self.config.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "about": about,
                "config": config,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.training_overrides import TrainingOverrides  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        about = d.pop("about")

        config = TrainingOverrides.from_dict(d.pop("config"))

        preset = cls(
            name=name,
            about=about,
            config=config,
        )

        preset.additional_properties = d
        return preset

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
