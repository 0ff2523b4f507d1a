from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define

T = TypeVar("T", bound="KeyPoliciesRequest")


@_attrs_define
class KeyPoliciesRequest:
    """Which policies a key may name.

    Attributes:
        policies (list[UUID] | None): Ids; null: all of the tenant's, those to come too.
    """

    policies: list[UUID] | None

    def to_dict(self) -> dict[str, Any]:
        policies: list[str] | None
        if isinstance(self.policies, list):
            policies = []
            for policies_type_0_item_data in self.policies:
                policies_type_0_item = str(policies_type_0_item_data)
                policies.append(policies_type_0_item)

        else:
            policies = self.policies

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "policies": policies,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_policies(data: object) -> list[UUID] | None:
            if data is None:
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                policies_type_0 = []
                _policies_type_0 = data
                for policies_type_0_item_data in _policies_type_0:
                    policies_type_0_item = UUID(policies_type_0_item_data)

                    policies_type_0.append(policies_type_0_item)

                return policies_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[UUID] | None, data)

        policies = _parse_policies(d.pop("policies"))

        key_policies_request = cls(
            policies=policies,
        )

        return key_policies_request
