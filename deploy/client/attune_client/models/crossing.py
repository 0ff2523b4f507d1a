from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.crossing_action_enum import CrossingActionEnum, check_crossing_action_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="Crossing")


@_attrs_define
class Crossing:
    """A measure that went past its bound, and what was done.

    Attributes:
        id (UUID):
        policy (UUID):
        reading (UUID):
        measure (str):
        value (float):
        bound (float):
        action (CrossingActionEnum): * `alert` - Alert
            * `pause` - Pause
            * `fall_back` - Fall Back
        words (str):
        done (str):
        created_at (datetime.datetime):
        acted_at (datetime.datetime | None): When what it asks for was done.
        cleared_at (datetime.datetime | None):
        cleared_by (str):
        version (int | None | Unset):
    """

    id: UUID
    policy: UUID
    reading: UUID
    measure: str
    value: float
    bound: float
    action: CrossingActionEnum
    words: str
    done: str
    created_at: datetime.datetime
    acted_at: datetime.datetime | None
    cleared_at: datetime.datetime | None
    cleared_by: str
    version: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        policy = str(self.policy)

        reading = str(self.reading)

        measure = self.measure

        value = self.value

        bound = self.bound

        action: str = self.action

        words = self.words

        done = self.done

        created_at = self.created_at.isoformat()

        acted_at: None | str
        if isinstance(self.acted_at, datetime.datetime):
            acted_at = self.acted_at.isoformat()
        else:
            acted_at = self.acted_at

        cleared_at: None | str
        if isinstance(self.cleared_at, datetime.datetime):
            cleared_at = self.cleared_at.isoformat()
        else:
            cleared_at = self.cleared_at

        cleared_by = self.cleared_by

        version: int | None | Unset
        if isinstance(self.version, Unset):
            version = UNSET
        else:
            version = self.version

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "policy": policy,
                "reading": reading,
                "measure": measure,
                "value": value,
                "bound": bound,
                "action": action,
                "words": words,
                "done": done,
                "created_at": created_at,
                "acted_at": acted_at,
                "cleared_at": cleared_at,
                "cleared_by": cleared_by,
            }
        )
        if version is not UNSET:
            field_dict["version"] = version

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = UUID(d.pop("id"))

        policy = UUID(d.pop("policy"))

        reading = UUID(d.pop("reading"))

        measure = d.pop("measure")

        value = d.pop("value")

        bound = d.pop("bound")

        action = check_crossing_action_enum(d.pop("action"))

        words = d.pop("words")

        done = d.pop("done")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_acted_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                acted_at_type_0 = datetime.datetime.fromisoformat(data)

                return acted_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        acted_at = _parse_acted_at(d.pop("acted_at"))

        def _parse_cleared_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                cleared_at_type_0 = datetime.datetime.fromisoformat(data)

                return cleared_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        cleared_at = _parse_cleared_at(d.pop("cleared_at"))

        cleared_by = d.pop("cleared_by")

        def _parse_version(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        version = _parse_version(d.pop("version", UNSET))

        crossing = cls(
            id=id,
            policy=policy,
            reading=reading,
            measure=measure,
            value=value,
            bound=bound,
            action=action,
            words=words,
            done=done,
            created_at=created_at,
            acted_at=acted_at,
            cleared_at=cleared_at,
            cleared_by=cleared_by,
            version=version,
        )

        crossing.additional_properties = d
        return crossing

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
