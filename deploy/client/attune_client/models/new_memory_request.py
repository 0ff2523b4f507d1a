from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="NewMemoryRequest")


@_attrs_define
class NewMemoryRequest:
    """What the caller wants of a policy's replies.

    Attributes:
        policy (UUID):
        text (str):
        pinned (bool | Unset):  Default: False.
        end_user (None | str | Unset): For one's end user of that name, as clients name them in `user`.
    """

    policy: UUID
    text: str
    pinned: bool | Unset = False
    end_user: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        policy = str(self.policy)

        text = self.text

        pinned = self.pinned

        end_user: None | str | Unset
        if isinstance(self.end_user, Unset):
            end_user = UNSET
        else:
            end_user = self.end_user

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "policy": policy,
                "text": text,
            }
        )
        if pinned is not UNSET:
            field_dict["pinned"] = pinned
        if end_user is not UNSET:
            field_dict["end_user"] = end_user

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        policy = UUID(d.pop("policy"))

        text = d.pop("text")

        pinned = d.pop("pinned", UNSET)

        def _parse_end_user(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        end_user = _parse_end_user(d.pop("end_user", UNSET))

        new_memory_request = cls(
            policy=policy,
            text=text,
            pinned=pinned,
            end_user=end_user,
        )

        return new_memory_request
