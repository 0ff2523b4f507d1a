from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="NewDeletionRequest")


@_attrs_define
class NewDeletionRequest:
    """What is to be deleted, one of them.

    Attributes:
        session (UUID | Unset): A session, with what repeats its person's questions.
        user (UUID | Unset): What a user said in sessions that name no end user, and their wishes.
        end_user (str | Unset): What was said for an end user, as clients name them in `user`, and their wishes.
        everything (str | Unset): Everything that was said in the tenant: its slug, to confirm. For owners.
    """

    session: UUID | Unset = UNSET
    user: UUID | Unset = UNSET
    end_user: str | Unset = UNSET
    everything: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        session: str | Unset = UNSET
        if not isinstance(self.session, Unset):
            session = str(self.session)

        user: str | Unset = UNSET
        if not isinstance(self.user, Unset):
            user = str(self.user)

        end_user = self.end_user

        everything = self.everything

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if session is not UNSET:
            field_dict["session"] = session
        if user is not UNSET:
            field_dict["user"] = user
        if end_user is not UNSET:
            field_dict["end_user"] = end_user
        if everything is not UNSET:
            field_dict["everything"] = everything

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _session = d.pop("session", UNSET)
        session: UUID | Unset
        if isinstance(_session, Unset):
            session = UNSET
        else:
            session = UUID(_session)

        _user = d.pop("user", UNSET)
        user: UUID | Unset
        if isinstance(_user, Unset):
            user = UNSET
        else:
            user = UUID(_user)

        end_user = d.pop("end_user", UNSET)

        everything = d.pop("everything", UNSET)

        new_deletion_request = cls(
            session=session,
            user=user,
            end_user=end_user,
            everything=everything,
        )

        return new_deletion_request
