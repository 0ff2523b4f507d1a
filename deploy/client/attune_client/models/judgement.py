from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.judgement_source_enum import (
    JudgementSourceEnum,
    check_judgement_source_enum,
)
from ..models.judgement_state_enum import JudgementStateEnum, check_judgement_state_enum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.hint import Hint
    from ..models.vote import Vote


T = TypeVar("T", bound="Judgement")


@_attrs_define
class Judgement:
    """One judging of one turn, with every vote.

    Attributes:
        id (UUID):
        turn (UUID):
        judge (str): Backend and model; the operator of an override.
        prompt_version (str):
        votes_asked (int):
        temperature (float): The judge's; 0 where it has none.
        state (JudgementStateEnum): * `pending` - Pending
            * `settled` - Settled
            * `failed` - Failed
        reward (int | None): 1 good, -1 bad, 0 neutral: the strict majority.
        source (JudgementSourceEnum): * `judge` - Judge
            * `override` - Override
        reason (str):
        attempts (int):
        votes (list[Vote]):
        hints (list[Hint]):
        created_at (datetime.datetime):
        settled_at (datetime.datetime | None):
        rubric (int | None | Unset): Its number; null: the built-in one.
    """

    id: UUID
    turn: UUID
    judge: str
    prompt_version: str
    votes_asked: int
    temperature: float
    state: JudgementStateEnum
    reward: int | None
    source: JudgementSourceEnum
    reason: str
    attempts: int
    votes: list[Vote]
    hints: list[Hint]
    created_at: datetime.datetime
    settled_at: datetime.datetime | None
    rubric: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        turn = str(self.turn)

        judge = self.judge

        prompt_version = self.prompt_version

        votes_asked = self.votes_asked

        temperature = self.temperature

        state: str = self.state

        reward: int | None
        reward = self.reward

        source: str = self.source

        reason = self.reason

        attempts = self.attempts

        votes = []
        for votes_item_data in self.votes:
            votes_item = votes_item_data.to_dict()
            votes.append(votes_item)

        hints = []
        for hints_item_data in self.hints:
            hints_item = hints_item_data.to_dict()
            hints.append(hints_item)

        created_at = self.created_at.isoformat()

        settled_at: None | str
        if isinstance(self.settled_at, datetime.datetime):
            settled_at = self.settled_at.isoformat()
        else:
            settled_at = self.settled_at

        rubric: int | None | Unset
        if isinstance(self.rubric, Unset):
            rubric = UNSET
        else:
            rubric = self.rubric

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "turn": turn,
                "judge": judge,
                "prompt_version": prompt_version,
                "votes_asked": votes_asked,
                "temperature": temperature,
                "state": state,
                "reward": reward,
                "source": source,
                "reason": reason,
                "attempts": attempts,
                "votes": votes,
                "hints": hints,
                "created_at": created_at,
                "settled_at": settled_at,
            }
        )
        if rubric is not UNSET:
            field_dict["rubric"] = rubric

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.hint import Hint  # noqa: PLC0415
        from ..models.vote import Vote  # noqa: PLC0415

        d = dict(src_dict)
        id = UUID(d.pop("id"))

        turn = UUID(d.pop("turn"))

        judge = d.pop("judge")

        prompt_version = d.pop("prompt_version")

        votes_asked = d.pop("votes_asked")

        temperature = d.pop("temperature")

        state = check_judgement_state_enum(d.pop("state"))

        def _parse_reward(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        reward = _parse_reward(d.pop("reward"))

        source = check_judgement_source_enum(d.pop("source"))

        reason = d.pop("reason")

        attempts = d.pop("attempts")

        votes = []
        _votes = d.pop("votes")
        for votes_item_data in _votes:
            votes_item = Vote.from_dict(votes_item_data)

            votes.append(votes_item)

        hints = []
        _hints = d.pop("hints")
        for hints_item_data in _hints:
            hints_item = Hint.from_dict(hints_item_data)

            hints.append(hints_item)

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_settled_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                settled_at_type_0 = datetime.datetime.fromisoformat(data)

                return settled_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        settled_at = _parse_settled_at(d.pop("settled_at"))

        def _parse_rubric(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        rubric = _parse_rubric(d.pop("rubric", UNSET))

        judgement = cls(
            id=id,
            turn=turn,
            judge=judge,
            prompt_version=prompt_version,
            votes_asked=votes_asked,
            temperature=temperature,
            state=state,
            reward=reward,
            source=source,
            reason=reason,
            attempts=attempts,
            votes=votes,
            hints=hints,
            created_at=created_at,
            settled_at=settled_at,
            rubric=rubric,
        )

        judgement.additional_properties = d
        return judgement

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
