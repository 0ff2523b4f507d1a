from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.judge_settings import JudgeSettings
    from ..models.rules import Rules


T = TypeVar("T", bound="PolicyJudging")


@_attrs_define
class PolicyJudging:
    """A policy's own judge settings, and what holds.

    Attributes:
        own (JudgeSettings): How turns are judged; null is as one level above, what is left out stays.
        holds (Rules): What holds after every level was asked.
    """

    own: JudgeSettings
    holds: Rules
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
        from ..models.judge_settings import JudgeSettings  # noqa: PLC0415
        from ..models.rules import Rules  # noqa: PLC0415

        d = dict(src_dict)
        own = JudgeSettings.from_dict(d.pop("own"))

        holds = Rules.from_dict(d.pop("holds"))

        policy_judging = cls(
            own=own,
            holds=holds,
        )

        policy_judging.additional_properties = d
        return policy_judging

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
