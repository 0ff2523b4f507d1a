from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="RotationRequest")


@_attrs_define
class RotationRequest:
    """How a key hands over to its successor.

    Attributes:
        overlap_s (float | Unset): For how long the old one still works, seconds. Default: 0.0.
    """

    overlap_s: float | Unset = 0.0

    def to_dict(self) -> dict[str, Any]:
        overlap_s = self.overlap_s

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if overlap_s is not UNSET:
            field_dict["overlap_s"] = overlap_s

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        overlap_s = d.pop("overlap_s", UNSET)

        rotation_request = cls(
            overlap_s=overlap_s,
        )

        return rotation_request
