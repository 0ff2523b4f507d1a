from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.scopes_enum import ScopesEnum, check_scopes_enum

if TYPE_CHECKING:
    from ..models.limit import Limit


T = TypeVar("T", bound="Key")


@_attrs_define
class Key:
    """A key without its secret.

    Attributes:
        id (UUID):
        prefix (str): What may be shown of it.
        name (str):
        user (UUID):
        scopes (list[ScopesEnum]):
        effective_scopes (list[ScopesEnum]): Those of its scopes that its person's role gives now; the others do not
            count.
        policies (list[UUID] | None): Ids of the only policies that it may name; null: all of the tenant's.
        limit (Limit | None):
        created_at (datetime.datetime):
        expires_at (datetime.datetime | None):
        revoked_at (datetime.datetime | None):
        last_used_at (datetime.datetime | None): Written at most once a minute.
    """

    id: UUID
    prefix: str
    name: str
    user: UUID
    scopes: list[ScopesEnum]
    effective_scopes: list[ScopesEnum]
    policies: list[UUID] | None
    limit: Limit | None
    created_at: datetime.datetime
    expires_at: datetime.datetime | None
    revoked_at: datetime.datetime | None
    last_used_at: datetime.datetime | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.limit import Limit  # noqa: PLC0415

        id = str(self.id)

        prefix = self.prefix

        name = self.name

        user = str(self.user)

        scopes = []
        for scopes_item_data in self.scopes:
            scopes_item: str = scopes_item_data
            scopes.append(scopes_item)

        effective_scopes = []
        for effective_scopes_item_data in self.effective_scopes:
            effective_scopes_item: str = effective_scopes_item_data
            effective_scopes.append(effective_scopes_item)

        policies: list[str] | None
        if isinstance(self.policies, list):
            policies = []
            for policies_type_0_item_data in self.policies:
                policies_type_0_item = str(policies_type_0_item_data)
                policies.append(policies_type_0_item)

        else:
            policies = self.policies

        limit: dict[str, Any] | None
        if isinstance(self.limit, Limit):
            limit = self.limit.to_dict()
        else:
            limit = self.limit

        created_at = self.created_at.isoformat()

        expires_at: None | str
        if isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        revoked_at: None | str
        if isinstance(self.revoked_at, datetime.datetime):
            revoked_at = self.revoked_at.isoformat()
        else:
            revoked_at = self.revoked_at

        last_used_at: None | str
        if isinstance(self.last_used_at, datetime.datetime):
            last_used_at = self.last_used_at.isoformat()
        else:
            last_used_at = self.last_used_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "prefix": prefix,
                "name": name,
                "user": user,
                "scopes": scopes,
                "effective_scopes": effective_scopes,
                "policies": policies,
                "limit": limit,
                "created_at": created_at,
                "expires_at": expires_at,
                "revoked_at": revoked_at,
                "last_used_at": last_used_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.limit import Limit  # noqa: PLC0415

        d = dict(src_dict)
        id = UUID(d.pop("id"))

        prefix = d.pop("prefix")

        name = d.pop("name")

        user = UUID(d.pop("user"))

        scopes = []
        _scopes = d.pop("scopes")
        for scopes_item_data in _scopes:
            scopes_item = check_scopes_enum(scopes_item_data)

            scopes.append(scopes_item)

        effective_scopes = []
        _effective_scopes = d.pop("effective_scopes")
        for effective_scopes_item_data in _effective_scopes:
            effective_scopes_item = check_scopes_enum(effective_scopes_item_data)

            effective_scopes.append(effective_scopes_item)

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

        def _parse_limit(data: object) -> Limit | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                limit_type_1 = Limit.from_dict(data)

                return limit_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Limit | None, data)

        limit = _parse_limit(d.pop("limit"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_expires_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        expires_at = _parse_expires_at(d.pop("expires_at"))

        def _parse_revoked_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                revoked_at_type_0 = datetime.datetime.fromisoformat(data)

                return revoked_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        revoked_at = _parse_revoked_at(d.pop("revoked_at"))

        def _parse_last_used_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_used_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_used_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_used_at = _parse_last_used_at(d.pop("last_used_at"))

        key = cls(
            id=id,
            prefix=prefix,
            name=name,
            user=user,
            scopes=scopes,
            effective_scopes=effective_scopes,
            policies=policies,
            limit=limit,
            created_at=created_at,
            expires_at=expires_at,
            revoked_at=revoked_at,
            last_used_at=last_used_at,
        )

        key.additional_properties = d
        return key

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
