from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.sample_state_enum import SampleStateEnum, check_sample_state_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="Sample")


@_attrs_define
class Sample:
    """What one turn is worth to its policy, or why nothing.

    Attributes:
        id (UUID):
        turn (UUID):
        policy (UUID):
        source (str): The turn's kind: live, rollout or shadow.
        state (SampleStateEnum): * `ready` - Ready
            * `claimed` - Claimed
            * `consumed` - Consumed
            * `dropped` - Dropped
            * `ineligible` - Ineligible
        reason (str):
        means (str): What the reason's code means, in a sentence, or nothing.
        reward (float | None): Process reward: what was said of the reply.
        staleness (int | None): Steps along the lineage when it was consumed.
        run (None | UUID):
        outcome (Any): What the step did with it.
        created_at (datetime.datetime):
        consumed_at (datetime.datetime | None):
        version (int | Unset):  Default: 0.
    """

    id: UUID
    turn: UUID
    policy: UUID
    source: str
    state: SampleStateEnum
    reason: str
    means: str
    reward: float | None
    staleness: int | None
    run: None | UUID
    outcome: Any
    created_at: datetime.datetime
    consumed_at: datetime.datetime | None
    version: int | Unset = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        turn = str(self.turn)

        policy = str(self.policy)

        source = self.source

        state: str = self.state

        reason = self.reason

        means = self.means

        reward: float | None
        reward = self.reward

        staleness: int | None
        staleness = self.staleness

        run: None | str
        if isinstance(self.run, UUID):
            run = str(self.run)
        else:
            run = self.run

        outcome = self.outcome

        created_at = self.created_at.isoformat()

        consumed_at: None | str
        if isinstance(self.consumed_at, datetime.datetime):
            consumed_at = self.consumed_at.isoformat()
        else:
            consumed_at = self.consumed_at

        version = self.version

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "turn": turn,
                "policy": policy,
                "source": source,
                "state": state,
                "reason": reason,
                "means": means,
                "reward": reward,
                "staleness": staleness,
                "run": run,
                "outcome": outcome,
                "created_at": created_at,
                "consumed_at": consumed_at,
            }
        )
        if version is not UNSET:
            field_dict["version"] = version

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = UUID(d.pop("id"))

        turn = UUID(d.pop("turn"))

        policy = UUID(d.pop("policy"))

        source = d.pop("source")

        state = check_sample_state_enum(d.pop("state"))

        reason = d.pop("reason")

        means = d.pop("means")

        def _parse_reward(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        reward = _parse_reward(d.pop("reward"))

        def _parse_staleness(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        staleness = _parse_staleness(d.pop("staleness"))

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

        outcome = d.pop("outcome")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_consumed_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                consumed_at_type_0 = datetime.datetime.fromisoformat(data)

                return consumed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        consumed_at = _parse_consumed_at(d.pop("consumed_at"))

        version = d.pop("version", UNSET)

        sample = cls(
            id=id,
            turn=turn,
            policy=policy,
            source=source,
            state=state,
            reason=reason,
            means=means,
            reward=reward,
            staleness=staleness,
            run=run,
            outcome=outcome,
            created_at=created_at,
            consumed_at=consumed_at,
            version=version,
        )

        sample.additional_properties = d
        return sample

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
