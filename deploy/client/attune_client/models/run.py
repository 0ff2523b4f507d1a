from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.run_state_enum import RunStateEnum, check_run_state_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="Run")


@_attrs_define
class Run:
    """One step of one policy.

    Attributes:
        id (UUID):
        policy (UUID):
        state (RunStateEnum): * `queued` - Queued
            * `running` - Running
            * `succeeded` - Succeeded
            * `no_op` - No Op
            * `failed` - Failed
            * `cancelled` - Cancelled
        trigger (str): threshold, clock, operator:<id> or key:<public id>
        reason (str):
        attempts (int):
        config (Any): The exact configuration used.
        config_number (int | None): The policy's configuration that this was; None until the run was taken.
        progress (Any):
        metrics (Any):
        created_at (datetime.datetime):
        started_at (datetime.datetime | None):
        finished_at (datetime.datetime | None):
        parent_version (int | Unset): The version that it is a step from; 0 is the bare base. Default: 0.
        version (int | None | Unset): The version that it made, if any.
        samples (int | Unset):  Default: 0.
    """

    id: UUID
    policy: UUID
    state: RunStateEnum
    trigger: str
    reason: str
    attempts: int
    config: Any
    config_number: int | None
    progress: Any
    metrics: Any
    created_at: datetime.datetime
    started_at: datetime.datetime | None
    finished_at: datetime.datetime | None
    parent_version: int | Unset = 0
    version: int | None | Unset = UNSET
    samples: int | Unset = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        policy = str(self.policy)

        state: str = self.state

        trigger = self.trigger

        reason = self.reason

        attempts = self.attempts

        config = self.config

        config_number: int | None
        config_number = self.config_number

        progress = self.progress

        metrics = self.metrics

        created_at = self.created_at.isoformat()

        started_at: None | str
        if isinstance(self.started_at, datetime.datetime):
            started_at = self.started_at.isoformat()
        else:
            started_at = self.started_at

        finished_at: None | str
        if isinstance(self.finished_at, datetime.datetime):
            finished_at = self.finished_at.isoformat()
        else:
            finished_at = self.finished_at

        parent_version = self.parent_version

        version: int | None | Unset
        if isinstance(self.version, Unset):
            version = UNSET
        else:
            version = self.version

        samples = self.samples

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "policy": policy,
                "state": state,
                "trigger": trigger,
                "reason": reason,
                "attempts": attempts,
                "config": config,
                "config_number": config_number,
                "progress": progress,
                "metrics": metrics,
                "created_at": created_at,
                "started_at": started_at,
                "finished_at": finished_at,
            }
        )
        if parent_version is not UNSET:
            field_dict["parent_version"] = parent_version
        if version is not UNSET:
            field_dict["version"] = version
        if samples is not UNSET:
            field_dict["samples"] = samples

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = UUID(d.pop("id"))

        policy = UUID(d.pop("policy"))

        state = check_run_state_enum(d.pop("state"))

        trigger = d.pop("trigger")

        reason = d.pop("reason")

        attempts = d.pop("attempts")

        config = d.pop("config")

        def _parse_config_number(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        config_number = _parse_config_number(d.pop("config_number"))

        progress = d.pop("progress")

        metrics = d.pop("metrics")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_started_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                started_at_type_0 = datetime.datetime.fromisoformat(data)

                return started_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        started_at = _parse_started_at(d.pop("started_at"))

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

        parent_version = d.pop("parent_version", UNSET)

        def _parse_version(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        version = _parse_version(d.pop("version", UNSET))

        samples = d.pop("samples", UNSET)

        run = cls(
            id=id,
            policy=policy,
            state=state,
            trigger=trigger,
            reason=reason,
            attempts=attempts,
            config=config,
            config_number=config_number,
            progress=progress,
            metrics=metrics,
            created_at=created_at,
            started_at=started_at,
            finished_at=finished_at,
            parent_version=parent_version,
            version=version,
            samples=samples,
        )

        run.additional_properties = d
        return run

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
