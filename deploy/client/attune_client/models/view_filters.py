from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.judged_enum import JudgedEnum, check_judged_enum
from ..models.turn_kind_enum import TurnKindEnum, check_turn_kind_enum
from ..models.within_enum import WithinEnum, check_within_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="ViewFilters")


@_attrs_define
class ViewFilters:
    """What a view narrows the list to; at least one of these.

    Attributes:
        policy (UUID | Unset):
        kind (TurnKindEnum | Unset): * `live` - Live
            * `rollout` - Rollout
            * `shadow` - Shadow
            * `evaluation` - Evaluation
        judged (JudgedEnum | Unset): * `bad` - a reply judged bad
            * `good` - a reply judged good
        within (WithinEnum | Unset): * `1d` - in the last 24 hours
            * `7d` - in the last 7 days
            * `30d` - in the last 30 days
        person (str | Unset): An end user: OpenAI's `user`.
    """

    policy: UUID | Unset = UNSET
    kind: TurnKindEnum | Unset = UNSET
    judged: JudgedEnum | Unset = UNSET
    within: WithinEnum | Unset = UNSET
    person: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        policy: str | Unset = UNSET
        if not isinstance(self.policy, Unset):
            policy = str(self.policy)

        kind: str | Unset = UNSET
        if not isinstance(self.kind, Unset):
            kind = self.kind

        judged: str | Unset = UNSET
        if not isinstance(self.judged, Unset):
            judged = self.judged

        within: str | Unset = UNSET
        if not isinstance(self.within, Unset):
            within = self.within

        person = self.person

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if policy is not UNSET:
            field_dict["policy"] = policy
        if kind is not UNSET:
            field_dict["kind"] = kind
        if judged is not UNSET:
            field_dict["judged"] = judged
        if within is not UNSET:
            field_dict["within"] = within
        if person is not UNSET:
            field_dict["person"] = person

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _policy = d.pop("policy", UNSET)
        policy: UUID | Unset
        if isinstance(_policy, Unset):
            policy = UNSET
        else:
            policy = UUID(_policy)

        _kind = d.pop("kind", UNSET)
        kind: TurnKindEnum | Unset
        if isinstance(_kind, Unset):
            kind = UNSET
        else:
            kind = check_turn_kind_enum(_kind)

        _judged = d.pop("judged", UNSET)
        judged: JudgedEnum | Unset
        if isinstance(_judged, Unset):
            judged = UNSET
        else:
            judged = check_judged_enum(_judged)

        _within = d.pop("within", UNSET)
        within: WithinEnum | Unset
        if isinstance(_within, Unset):
            within = UNSET
        else:
            within = check_within_enum(_within)

        person = d.pop("person", UNSET)

        view_filters = cls(
            policy=policy,
            kind=kind,
            judged=judged,
            within=within,
            person=person,
        )

        view_filters.additional_properties = d
        return view_filters

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
