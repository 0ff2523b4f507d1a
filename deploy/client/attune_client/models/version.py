from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.version_state_enum import VersionStateEnum, check_version_state_enum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.gate import Gate


T = TypeVar("T", bound="Version")


@_attrs_define
class Version:
    """An immutable adapter.

    Attributes:
        id (UUID):
        policy (UUID):
        number (int):
        depth (int): Steps along the lineage from the bare base.
        served_name (str):
        sha256 (str):
        rank (int):
        alpha (int):
        state (VersionStateEnum): * `created` - Created
            * `ready` - Ready
            * `refused` - Refused
            * `retired` - Retired
        reason (str):
        run (UUID): The training run that made it.
        metrics (Any):
        gates (list[Gate]):
        created_at (datetime.datetime):
        ready_at (datetime.datetime | None):
        parent_version (int | Unset): The version that it was a step from; 0 is the bare base. Default: 0.
    """

    id: UUID
    policy: UUID
    number: int
    depth: int
    served_name: str
    sha256: str
    rank: int
    alpha: int
    state: VersionStateEnum
    reason: str
    run: UUID
    metrics: Any
    gates: list[Gate]
    created_at: datetime.datetime
    ready_at: datetime.datetime | None
    parent_version: int | Unset = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        policy = str(self.policy)

        number = self.number

        depth = self.depth

        served_name = self.served_name

        sha256 = self.sha256

        rank = self.rank

        alpha = self.alpha

        state: str = self.state

        reason = self.reason

        run = str(self.run)

        metrics = self.metrics

        gates = []
        for gates_item_data in self.gates:
            gates_item = gates_item_data.to_dict()
            gates.append(gates_item)

        created_at = self.created_at.isoformat()

        ready_at: None | str
        if isinstance(self.ready_at, datetime.datetime):
            ready_at = self.ready_at.isoformat()
        else:
            ready_at = self.ready_at

        parent_version = self.parent_version

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "policy": policy,
                "number": number,
                "depth": depth,
                "served_name": served_name,
                "sha256": sha256,
                "rank": rank,
                "alpha": alpha,
                "state": state,
                "reason": reason,
                "run": run,
                "metrics": metrics,
                "gates": gates,
                "created_at": created_at,
                "ready_at": ready_at,
            }
        )
        if parent_version is not UNSET:
            field_dict["parent_version"] = parent_version

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.gate import Gate  # noqa: PLC0415

        d = dict(src_dict)
        id = UUID(d.pop("id"))

        policy = UUID(d.pop("policy"))

        number = d.pop("number")

        depth = d.pop("depth")

        served_name = d.pop("served_name")

        sha256 = d.pop("sha256")

        rank = d.pop("rank")

        alpha = d.pop("alpha")

        state = check_version_state_enum(d.pop("state"))

        reason = d.pop("reason")

        run = UUID(d.pop("run"))

        metrics = d.pop("metrics")

        gates = []
        _gates = d.pop("gates")
        for gates_item_data in _gates:
            gates_item = Gate.from_dict(gates_item_data)

            gates.append(gates_item)

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_ready_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ready_at_type_0 = datetime.datetime.fromisoformat(data)

                return ready_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        ready_at = _parse_ready_at(d.pop("ready_at"))

        parent_version = d.pop("parent_version", UNSET)

        version = cls(
            id=id,
            policy=policy,
            number=number,
            depth=depth,
            served_name=served_name,
            sha256=sha256,
            rank=rank,
            alpha=alpha,
            state=state,
            reason=reason,
            run=run,
            metrics=metrics,
            gates=gates,
            created_at=created_at,
            ready_at=ready_at,
            parent_version=parent_version,
        )

        version.additional_properties = d
        return version

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
