from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from attrs import define as _attrs_define

T = TypeVar("T", bound="NewRunRequest")


@_attrs_define
class NewRunRequest:
    """Which policy is to make a step of what waits.

    Attributes:
        policy (UUID):
    """

    policy: UUID

    def to_dict(self) -> dict[str, Any]:
        policy = str(self.policy)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "policy": policy,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        policy = UUID(d.pop("policy"))

        new_run_request = cls(
            policy=policy,
        )

        return new_run_request
