from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.deletion_state_enum import DeletionStateEnum, check_deletion_state_enum
from ..models.subject_enum import SubjectEnum, check_subject_enum

if TYPE_CHECKING:
    from ..models.deletion_deleted import DeletionDeleted
    from ..models.learned_from import LearnedFrom


T = TypeVar("T", bound="Deletion")


@_attrs_define
class Deletion:
    """A deletion: what of, how far it is, what it took, and which versions had learned from that.

    Attributes:
        id (UUID):
        subject (SubjectEnum): * `session` - Session
            * `end_user` - End User
            * `member` - Member
            * `everything` - Everything
            * `aged` - Aged
        subject_id (None | UUID): The session, end user, member or (aged) policy; empty: everything of the tenant.
        older_than_days (int | None): Of what is aged: days without a turn, before it was asked for.
        state (DeletionStateEnum): * `open` - Open
            * `done` - Done
        actor (str): Who asked: user:<id>, key:<public id> or system:<part>.
        turns_total (int): Turns there were when it was asked for.
        turns_gone (int): Of `turns_total`, and of what came since.
        deleted (DeletionDeleted): Rows that are gone, by kind.
        learned_from (list[LearnedFrom]):
        reason (str): What it waits for, while it is open.
        created_at (datetime.datetime):
        finished_at (datetime.datetime | None):
    """

    id: UUID
    subject: SubjectEnum
    subject_id: None | UUID
    older_than_days: int | None
    state: DeletionStateEnum
    actor: str
    turns_total: int
    turns_gone: int
    deleted: DeletionDeleted
    learned_from: list[LearnedFrom]
    reason: str
    created_at: datetime.datetime
    finished_at: datetime.datetime | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        subject: str = self.subject

        subject_id: None | str
        if isinstance(self.subject_id, UUID):
            subject_id = str(self.subject_id)
        else:
            subject_id = self.subject_id

        older_than_days: int | None
        older_than_days = self.older_than_days

        state: str = self.state

        actor = self.actor

        turns_total = self.turns_total

        turns_gone = self.turns_gone

        deleted = self.deleted.to_dict()

        learned_from = []
        for learned_from_item_data in self.learned_from:
            learned_from_item = learned_from_item_data.to_dict()
            learned_from.append(learned_from_item)

        reason = self.reason

        created_at = self.created_at.isoformat()

        finished_at: None | str
        if isinstance(self.finished_at, datetime.datetime):
            finished_at = self.finished_at.isoformat()
        else:
            finished_at = self.finished_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "subject": subject,
                "subject_id": subject_id,
                "older_than_days": older_than_days,
                "state": state,
                "actor": actor,
                "turns_total": turns_total,
                "turns_gone": turns_gone,
                "deleted": deleted,
                "learned_from": learned_from,
                "reason": reason,
                "created_at": created_at,
                "finished_at": finished_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.deletion_deleted import DeletionDeleted  # noqa: PLC0415
        from ..models.learned_from import LearnedFrom  # noqa: PLC0415

        d = dict(src_dict)
        id = UUID(d.pop("id"))

        subject = check_subject_enum(d.pop("subject"))

        def _parse_subject_id(data: object) -> None | UUID:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                subject_id_type_0 = UUID(data)

                return subject_id_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | UUID, data)

        subject_id = _parse_subject_id(d.pop("subject_id"))

        def _parse_older_than_days(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        older_than_days = _parse_older_than_days(d.pop("older_than_days"))

        state = check_deletion_state_enum(d.pop("state"))

        actor = d.pop("actor")

        turns_total = d.pop("turns_total")

        turns_gone = d.pop("turns_gone")

        deleted = DeletionDeleted.from_dict(d.pop("deleted"))

        learned_from = []
        _learned_from = d.pop("learned_from")
        for learned_from_item_data in _learned_from:
            learned_from_item = LearnedFrom.from_dict(learned_from_item_data)

            learned_from.append(learned_from_item)

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

        deletion = cls(
            id=id,
            subject=subject,
            subject_id=subject_id,
            older_than_days=older_than_days,
            state=state,
            actor=actor,
            turns_total=turns_total,
            turns_gone=turns_gone,
            deleted=deleted,
            learned_from=learned_from,
            reason=reason,
            created_at=created_at,
            finished_at=finished_at,
        )

        deletion.additional_properties = d
        return deletion

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
