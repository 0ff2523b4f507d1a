from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="Attempt")


@_attrs_define
class Attempt:
    """One try and what came back.

    Attributes:
        number (int):
        took_ms (float):
        created_at (datetime.datetime):
        status (int | None | Unset): HTTP status, where there was an answer.
        answer (str | Unset): The beginning of what was answered.
        error (str | Unset):
    """

    number: int
    took_ms: float
    created_at: datetime.datetime
    status: int | None | Unset = UNSET
    answer: str | Unset = UNSET
    error: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        number = self.number

        took_ms = self.took_ms

        created_at = self.created_at.isoformat()

        status: int | None | Unset
        if isinstance(self.status, Unset):
            status = UNSET
        else:
            status = self.status

        answer = self.answer

        error = self.error

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "number": number,
                "took_ms": took_ms,
                "created_at": created_at,
            }
        )
        if status is not UNSET:
            field_dict["status"] = status
        if answer is not UNSET:
            field_dict["answer"] = answer
        if error is not UNSET:
            field_dict["error"] = error

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        number = d.pop("number")

        took_ms = d.pop("took_ms")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_status(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        status = _parse_status(d.pop("status", UNSET))

        answer = d.pop("answer", UNSET)

        error = d.pop("error", UNSET)

        attempt = cls(
            number=number,
            took_ms=took_ms,
            created_at=created_at,
            status=status,
            answer=answer,
            error=error,
        )

        attempt.additional_properties = d
        return attempt

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
