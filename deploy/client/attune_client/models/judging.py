from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.rules import Rules
    from ..models.tenant_judge_settings import TenantJudgeSettings


T = TypeVar("T", bound="Judging")


@_attrs_define
class Judging:
    """The tenant's judge settings, and what holds for a policy without its own.

    Attributes:
        own (TenantJudgeSettings): As for a policy, with the cap, which is the tenant's.
        holds (Rules): What holds after every level was asked.
    """

    own: TenantJudgeSettings
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
        from ..models.rules import Rules  # noqa: PLC0415
        from ..models.tenant_judge_settings import TenantJudgeSettings  # noqa: PLC0415

        d = dict(src_dict)
        own = TenantJudgeSettings.from_dict(d.pop("own"))

        holds = Rules.from_dict(d.pop("holds"))

        judging = cls(
            own=own,
            holds=holds,
        )

        judging.additional_properties = d
        return judging

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
