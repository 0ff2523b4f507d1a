from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="Evidence")


@_attrs_define
class Evidence:
    """That a turn said it.

    Attributes:
        turn (UUID):
        session (UUID):
        words (str): Empty once the preference is deleted.
        created_at (datetime.datetime):
    """

    turn: UUID
    session: UUID
    words: str
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        turn = str(self.turn)

        session = str(self.session)

        words = self.words

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "turn": turn,
                "session": session,
                "words": words,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        turn = UUID(d.pop("turn"))

        session = UUID(d.pop("session"))

        words = d.pop("words")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        evidence = cls(
            turn=turn,
            session=session,
            words=words,
            created_at=created_at,
        )

        evidence.additional_properties = d
        return evidence

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
