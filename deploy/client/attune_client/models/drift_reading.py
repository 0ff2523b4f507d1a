from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.gauge_enum import GaugeEnum, check_gauge_enum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.measure import Measure


T = TypeVar("T", bound="DriftReading")


@_attrs_define
class DriftReading:
    """One gauge of one policy, at a run's end or over a week.

    Attributes:
        id (UUID):
        policy (UUID):
        gauge (GaugeEnum): * `rollout_learner` - rollout ↔ learner
            * `rollout_deploy` - rollout ↔ deploy
            * `learner_deploy` - learner ↔ deploy
        run (None | UUID): null: over a week.
        since (datetime.datetime | None): Beginning of the window it looks at.
        until (datetime.datetime | None): End of that window, exclusive.
        measures (list[Measure]):
        created_at (datetime.datetime):
        version (int | None | Unset): That the run made; without a run, the live one.
    """

    id: UUID
    policy: UUID
    gauge: GaugeEnum
    run: None | UUID
    since: datetime.datetime | None
    until: datetime.datetime | None
    measures: list[Measure]
    created_at: datetime.datetime
    version: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        policy = str(self.policy)

        gauge: str = self.gauge

        run: None | str
        if isinstance(self.run, UUID):
            run = str(self.run)
        else:
            run = self.run

        since: None | str
        if isinstance(self.since, datetime.datetime):
            since = self.since.isoformat()
        else:
            since = self.since

        until: None | str
        if isinstance(self.until, datetime.datetime):
            until = self.until.isoformat()
        else:
            until = self.until

        measures = []
        for measures_item_data in self.measures:
            measures_item = measures_item_data.to_dict()
            measures.append(measures_item)

        created_at = self.created_at.isoformat()

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
                "gauge": gauge,
                "run": run,
                "since": since,
                "until": until,
                "measures": measures,
                "created_at": created_at,
            }
        )
        if version is not UNSET:
            field_dict["version"] = version

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.measure import Measure  # noqa: PLC0415

        d = dict(src_dict)
        id = UUID(d.pop("id"))

        policy = UUID(d.pop("policy"))

        gauge = check_gauge_enum(d.pop("gauge"))

        def _parse_run(data: object) -> None | UUID:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                run_type_0 = UUID(data)

                return run_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | UUID, data)

        run = _parse_run(d.pop("run"))

        def _parse_since(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                since_type_0 = datetime.datetime.fromisoformat(data)

                return since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        since = _parse_since(d.pop("since"))

        def _parse_until(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                until_type_0 = datetime.datetime.fromisoformat(data)

                return until_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        until = _parse_until(d.pop("until"))

        measures = []
        _measures = d.pop("measures")
        for measures_item_data in _measures:
            measures_item = Measure.from_dict(measures_item_data)

            measures.append(measures_item)

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_version(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        version = _parse_version(d.pop("version", UNSET))

        drift_reading = cls(
            id=id,
            policy=policy,
            gauge=gauge,
            run=run,
            since=since,
            until=until,
            measures=measures,
            created_at=created_at,
            version=version,
        )

        drift_reading.additional_properties = d
        return drift_reading

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
