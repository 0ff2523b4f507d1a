from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="MemoryChangeRequest")


@_attrs_define
class MemoryChangeRequest:
    """What may be changed of an entry; what is left out stays.

    Attributes:
        text (str | Unset):
        pinned (bool | Unset): Comes first, is told until it is unpinned, and nothing that is overheard replaces it.
    """

    text: str | Unset = UNSET
    pinned: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        text = self.text

        pinned = self.pinned

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if text is not UNSET:
            field_dict["text"] = text
        if pinned is not UNSET:
            field_dict["pinned"] = pinned

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        text = d.pop("text", UNSET)

        pinned = d.pop("pinned", UNSET)

        memory_change_request = cls(
            text=text,
            pinned=pinned,
        )

        return memory_change_request
