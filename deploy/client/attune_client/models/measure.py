from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.measure_action_enum import MeasureActionEnum, check_measure_action_enum
from ..models.side_enum import SideEnum, check_side_enum

T = TypeVar("T", bound="Measure")


@_attrs_define
class Measure:
    """One measure of a gauge, and the bound that held then.

    Attributes:
        measure (str):
        value (float):
        unit (str):
        side (SideEnum): * `over` - over
            * `under` - under
        limit (float | None): null: the bound was off.
        action (MeasureActionEnum | None): What a crossing would have done.

            * `alert` - alert
            * `pause` - pause
            * `fall_back` - fall_back
        past (bool): Whether the value is past the limit.
    """

    measure: str
    value: float
    unit: str
    side: SideEnum
    limit: float | None
    action: MeasureActionEnum | None
    past: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        measure = self.measure

        value = self.value

        unit = self.unit

        side: str = self.side

        limit: float | None
        limit = self.limit

        action: None | str
        if isinstance(self.action, str):
            action = self.action
        else:
            action = self.action

        past = self.past

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "measure": measure,
                "value": value,
                "unit": unit,
                "side": side,
                "limit": limit,
                "action": action,
                "past": past,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        measure = d.pop("measure")

        value = d.pop("value")

        unit = d.pop("unit")

        side = check_side_enum(d.pop("side"))

        def _parse_limit(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        limit = _parse_limit(d.pop("limit"))

        def _parse_action(data: object) -> MeasureActionEnum | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                action_type_0 = check_measure_action_enum(data)

                return action_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(MeasureActionEnum | None, data)

        action = _parse_action(d.pop("action"))

        past = d.pop("past")

        measure = cls(
            measure=measure,
            value=value,
            unit=unit,
            side=side,
            limit=limit,
            action=action,
            past=past,
        )

        measure.additional_properties = d
        return measure

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
