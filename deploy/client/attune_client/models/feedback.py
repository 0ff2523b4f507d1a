from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="Feedback")


@_attrs_define
class Feedback:
    """What a person said of a turn by hand.

    Attributes:
        id (UUID):
        turn (UUID):
        user (UUID):
        score (int | None): -1, 0 or 1.
        correction (str):
        created_at (datetime.datetime):
    """

    id: UUID
    turn: UUID
    user: UUID
    score: int | None
    correction: str
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        turn = str(self.turn)

        user = str(self.user)

        score: int | None
        score = self.score

        correction = self.correction

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "turn": turn,
                "user": user,
                "score": score,
                "correction": correction,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = UUID(d.pop("id"))

        turn = UUID(d.pop("turn"))

        user = UUID(d.pop("user"))

        def _parse_score(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        score = _parse_score(d.pop("score"))

        correction = d.pop("correction")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        feedback = cls(
            id=id,
            turn=turn,
            user=user,
            score=score,
            correction=correction,
            created_at=created_at,
        )

        feedback.additional_properties = d
        return feedback

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
