from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="NewRubricRequest")


@_attrs_define
class NewRubricRequest:
    """A rubric to be judged by from now on.

    Attributes:
        text (str): Empty: back to one level above (for a policy the tenant's, for the tenant the built-in one).
        policy (None | Unset | UUID): null: all of them.
    """

    text: str
    policy: None | Unset | UUID = UNSET

    def to_dict(self) -> dict[str, Any]:
        text = self.text

        policy: None | str | Unset
        if isinstance(self.policy, Unset):
            policy = UNSET
        elif isinstance(self.policy, UUID):
            policy = str(self.policy)
        else:
            policy = self.policy

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "text": text,
            }
        )
        if policy is not UNSET:
            field_dict["policy"] = policy

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        text = d.pop("text")

        def _parse_policy(data: object) -> None | Unset | UUID:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                policy_type_0 = UUID(data)

                return policy_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | UUID, data)

        policy = _parse_policy(d.pop("policy", UNSET))

        new_rubric_request = cls(
            text=text,
            policy=policy,
        )

        return new_rubric_request
