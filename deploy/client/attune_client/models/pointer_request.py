from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PointerRequest")


@_attrs_define
class PointerRequest:
    """Which version is to answer.

    Attributes:
        version (int): 0 is the bare base.
        reason (str | Unset):  Default: ''.
    """

    version: int
    reason: str | Unset = ""

    def to_dict(self) -> dict[str, Any]:
        version = self.version

        reason = self.reason

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "version": version,
            }
        )
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        version = d.pop("version")

        reason = d.pop("reason", UNSET)

        pointer_request = cls(
            version=version,
            reason=reason,
        )

        return pointer_request
