from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.preset_enum import PresetEnum, check_preset_enum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.training_change import TrainingChange


T = TypeVar("T", bound="ConfigChangeRequest")


@_attrs_define
class ConfigChangeRequest:
    """What is to hold from the next run on: the preset, where one is named, and the settings on top of it.

    Attributes:
        preset (PresetEnum | Unset): * `standard` - standard
            * `gentle` - gentle
            * `quick` - quick
        config (TrainingChange | Unset):
        number (int | Unset): The number that the change was thought of against: another by now is a conflict.
    """

    preset: PresetEnum | Unset = UNSET
    config: TrainingChange | Unset = UNSET
    number: int | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        preset: str | Unset = UNSET
        if not isinstance(self.preset, Unset):
            preset = self.preset

        config: dict[str, Any] | Unset = UNSET
        if not isinstance(self.config, Unset):
            config = self.config.to_dict()

        number = self.number

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if preset is not UNSET:
            field_dict["preset"] = preset
        if config is not UNSET:
            field_dict["config"] = config
        if number is not UNSET:
            field_dict["number"] = number

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.training_change import TrainingChange  # noqa: PLC0415

        d = dict(src_dict)
        _preset = d.pop("preset", UNSET)
        preset: PresetEnum | Unset
        if isinstance(_preset, Unset):
            preset = UNSET
        else:
            preset = check_preset_enum(_preset)

        _config = d.pop("config", UNSET)
        config: TrainingChange | Unset
        if isinstance(_config, Unset):
            config = UNSET
        else:
            config = TrainingChange.from_dict(_config)

        number = d.pop("number", UNSET)

        config_change_request = cls(
            preset=preset,
            config=config,
            number=number,
        )

        return config_change_request
