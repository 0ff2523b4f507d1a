from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.memory_source_enum import MemorySourceEnum, check_memory_source_enum
from ..models.memory_state_enum import MemoryStateEnum, check_memory_state_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="Memory")


@_attrs_define
class Memory:
    """One thing that one person wants of one policy's replies.

    Attributes:
        id (UUID):
        policy (UUID):
        user (UUID):
        text (str): Empty once what it rests on was deleted.
        state (MemoryStateEnum): * `active` - Active
            * `learned` - Learned
            * `superseded` - Superseded
        reason (str): Why it is in its state.
        source (MemorySourceEnum): * `hint` - Hint
            * `correction` - Correction
            * `typed` - Typed
        pinned (bool): Comes first, is told until it is unpinned, and nothing that is overheard replaces it.
        general (bool): Off: it may be about one answer only, and is told once two sessions said it.
        revision (int): Grows with every edit, and where it is asked for again after it was not told.
        evidence_count (int): Turns that said it.
        superseded_by (None | UUID):
        held_since (datetime.datetime | None): Since when no prompt is told of it.
        first_seen (datetime.datetime):
        last_seen (datetime.datetime):
        created_at (datetime.datetime):
        changed_at (datetime.datetime):
        end_user (None | str | Unset): OpenAI's `user`.
        held_by (int | None | Unset): The version that showed that it need not be told.
    """

    id: UUID
    policy: UUID
    user: UUID
    text: str
    state: MemoryStateEnum
    reason: str
    source: MemorySourceEnum
    pinned: bool
    general: bool
    revision: int
    evidence_count: int
    superseded_by: None | UUID
    held_since: datetime.datetime | None
    first_seen: datetime.datetime
    last_seen: datetime.datetime
    created_at: datetime.datetime
    changed_at: datetime.datetime
    end_user: None | str | Unset = UNSET
    held_by: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        policy = str(self.policy)

        user = str(self.user)

        text = self.text

        state: str = self.state

        reason = self.reason

        source: str = self.source

        pinned = self.pinned

        general = self.general

        revision = self.revision

        evidence_count = self.evidence_count

        superseded_by: None | str
        if isinstance(self.superseded_by, UUID):
            superseded_by = str(self.superseded_by)
        else:
            superseded_by = self.superseded_by

        held_since: None | str
        if isinstance(self.held_since, datetime.datetime):
            held_since = self.held_since.isoformat()
        else:
            held_since = self.held_since

        first_seen = self.first_seen.isoformat()

        last_seen = self.last_seen.isoformat()

        created_at = self.created_at.isoformat()

        changed_at = self.changed_at.isoformat()

        end_user: None | str | Unset
        if isinstance(self.end_user, Unset):
            end_user = UNSET
        else:
            end_user = self.end_user

        held_by: int | None | Unset
        if isinstance(self.held_by, Unset):
            held_by = UNSET
        else:
            held_by = self.held_by

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "policy": policy,
                "user": user,
                "text": text,
                "state": state,
                "reason": reason,
                "source": source,
                "pinned": pinned,
                "general": general,
                "revision": revision,
                "evidence_count": evidence_count,
                "superseded_by": superseded_by,
                "held_since": held_since,
                "first_seen": first_seen,
                "last_seen": last_seen,
                "created_at": created_at,
                "changed_at": changed_at,
            }
        )
        if end_user is not UNSET:
            field_dict["end_user"] = end_user
        if held_by is not UNSET:
            field_dict["held_by"] = held_by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = UUID(d.pop("id"))

        policy = UUID(d.pop("policy"))

        user = UUID(d.pop("user"))

        text = d.pop("text")

        state = check_memory_state_enum(d.pop("state"))

        reason = d.pop("reason")

        source = check_memory_source_enum(d.pop("source"))

        pinned = d.pop("pinned")

        general = d.pop("general")

        revision = d.pop("revision")

        evidence_count = d.pop("evidence_count")

        def _parse_superseded_by(data: object) -> None | UUID:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                superseded_by_type_0 = UUID(data)

                return superseded_by_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | UUID, data)

        superseded_by = _parse_superseded_by(d.pop("superseded_by"))

        def _parse_held_since(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                held_since_type_0 = datetime.datetime.fromisoformat(data)

                return held_since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        held_since = _parse_held_since(d.pop("held_since"))

        first_seen = datetime.datetime.fromisoformat(d.pop("first_seen"))

        last_seen = datetime.datetime.fromisoformat(d.pop("last_seen"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        def _parse_end_user(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        end_user = _parse_end_user(d.pop("end_user", UNSET))

        def _parse_held_by(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        held_by = _parse_held_by(d.pop("held_by", UNSET))

        memory = cls(
            id=id,
            policy=policy,
            user=user,
            text=text,
            state=state,
            reason=reason,
            source=source,
            pinned=pinned,
            general=general,
            revision=revision,
            evidence_count=evidence_count,
            superseded_by=superseded_by,
            held_since=held_since,
            first_seen=first_seen,
            last_seen=last_seen,
            created_at=created_at,
            changed_at=changed_at,
            end_user=end_user,
            held_by=held_by,
        )

        memory.additional_properties = d
        return memory

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
