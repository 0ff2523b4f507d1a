from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.export_state_enum import ExportStateEnum, check_export_state_enum

T = TypeVar("T", bound="Export")


@_attrs_define
class Export:
    """An archive of everything that the tenant has, and how far it is.

    Attributes:
        id (UUID):
        state (ExportStateEnum): * `queued` - Queued
            * `running` - Running
            * `ready` - Ready
            * `failed` - Failed
            * `expired` - Expired
        actor (str): Who asked: user:<id>, key:<public id> or system:<part>.
        part (str): The file of the archive that is being written.
        rows_done (int):
        rows_total (int): Counted in the snapshot; 0: not yet.
        snapshot_at (datetime.datetime | None): The moment that every row in it is of.
        size (int | None): Bytes of the archive.
        sha256 (str):
        reason (str): Why it failed, or waits again.
        created_at (datetime.datetime):
        finished_at (datetime.datetime | None):
        expires_at (datetime.datetime | None): Its file is deleted then.
    """

    id: UUID
    state: ExportStateEnum
    actor: str
    part: str
    rows_done: int
    rows_total: int
    snapshot_at: datetime.datetime | None
    size: int | None
    sha256: str
    reason: str
    created_at: datetime.datetime
    finished_at: datetime.datetime | None
    expires_at: datetime.datetime | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        state: str = self.state

        actor = self.actor

        part = self.part

        rows_done = self.rows_done

        rows_total = self.rows_total

        snapshot_at: None | str
        if isinstance(self.snapshot_at, datetime.datetime):
            snapshot_at = self.snapshot_at.isoformat()
        else:
            snapshot_at = self.snapshot_at

        size: int | None
        size = self.size

        sha256 = self.sha256

        reason = self.reason

        created_at = self.created_at.isoformat()

        finished_at: None | str
        if isinstance(self.finished_at, datetime.datetime):
            finished_at = self.finished_at.isoformat()
        else:
            finished_at = self.finished_at

        expires_at: None | str
        if isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "state": state,
                "actor": actor,
                "part": part,
                "rows_done": rows_done,
                "rows_total": rows_total,
                "snapshot_at": snapshot_at,
                "size": size,
                "sha256": sha256,
                "reason": reason,
                "created_at": created_at,
                "finished_at": finished_at,
                "expires_at": expires_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = UUID(d.pop("id"))

        state = check_export_state_enum(d.pop("state"))

        actor = d.pop("actor")

        part = d.pop("part")

        rows_done = d.pop("rows_done")

        rows_total = d.pop("rows_total")

        def _parse_snapshot_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                snapshot_at_type_0 = datetime.datetime.fromisoformat(data)

                return snapshot_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        snapshot_at = _parse_snapshot_at(d.pop("snapshot_at"))

        def _parse_size(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        size = _parse_size(d.pop("size"))

        sha256 = d.pop("sha256")

        reason = d.pop("reason")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_finished_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                finished_at_type_0 = datetime.datetime.fromisoformat(data)

                return finished_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        finished_at = _parse_finished_at(d.pop("finished_at"))

        def _parse_expires_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        expires_at = _parse_expires_at(d.pop("expires_at"))

        export = cls(
            id=id,
            state=state,
            actor=actor,
            part=part,
            rows_done=rows_done,
            rows_total=rows_total,
            snapshot_at=snapshot_at,
            size=size,
            sha256=sha256,
            reason=reason,
            created_at=created_at,
            finished_at=finished_at,
            expires_at=expires_at,
        )

        export.additional_properties = d
        return export

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
