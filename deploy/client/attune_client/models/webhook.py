from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.events_enum import EventsEnum, check_events_enum

T = TypeVar("T", bound="Webhook")


@_attrs_define
class Webhook:
    """An address that is told of chosen events. Its secret is shown when it is made or changed, and never again.

    Attributes:
        id (UUID):
        url (str):
        events (list[EventsEnum]):
        enabled (bool):
        disabled_reason (str):
        failing_since (datetime.datetime | None): First failure since the last success.
        previous_until (datetime.datetime | None): Until then the secret before this one signs, too.
        created_at (datetime.datetime):
    """

    id: UUID
    url: str
    events: list[EventsEnum]
    enabled: bool
    disabled_reason: str
    failing_since: datetime.datetime | None
    previous_until: datetime.datetime | None
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        url = self.url

        events = []
        for events_item_data in self.events:
            events_item: str = events_item_data
            events.append(events_item)

        enabled = self.enabled

        disabled_reason = self.disabled_reason

        failing_since: None | str
        if isinstance(self.failing_since, datetime.datetime):
            failing_since = self.failing_since.isoformat()
        else:
            failing_since = self.failing_since

        previous_until: None | str
        if isinstance(self.previous_until, datetime.datetime):
            previous_until = self.previous_until.isoformat()
        else:
            previous_until = self.previous_until

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "url": url,
                "events": events,
                "enabled": enabled,
                "disabled_reason": disabled_reason,
                "failing_since": failing_since,
                "previous_until": previous_until,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = UUID(d.pop("id"))

        url = d.pop("url")

        events = []
        _events = d.pop("events")
        for events_item_data in _events:
            events_item = check_events_enum(events_item_data)

            events.append(events_item)

        enabled = d.pop("enabled")

        disabled_reason = d.pop("disabled_reason")

        def _parse_failing_since(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                failing_since_type_0 = datetime.datetime.fromisoformat(data)

                return failing_since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        failing_since = _parse_failing_since(d.pop("failing_since"))

        def _parse_previous_until(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                previous_until_type_0 = datetime.datetime.fromisoformat(data)

                return previous_until_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        previous_until = _parse_previous_until(d.pop("previous_until"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        webhook = cls(
            id=id,
            url=url,
            events=events,
            enabled=enabled,
            disabled_reason=disabled_reason,
            failing_since=failing_since,
            previous_until=previous_until,
            created_at=created_at,
        )

        webhook.additional_properties = d
        return webhook

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
