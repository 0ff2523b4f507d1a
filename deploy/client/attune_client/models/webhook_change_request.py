from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.events_enum import EventsEnum, check_events_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="WebhookChangeRequest")


@_attrs_define
class WebhookChangeRequest:
    """What may be changed of an endpoint; what is left out stays.

    Attributes:
        url (str | Unset):
        events (list[EventsEnum] | Unset):
        enabled (bool | Unset): Off: it is told nothing, and what is on its way ends as dead.
    """

    url: str | Unset = UNSET
    events: list[EventsEnum] | Unset = UNSET
    enabled: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        url = self.url

        events: list[str] | Unset = UNSET
        if not isinstance(self.events, Unset):
            events = []
            for events_item_data in self.events:
                events_item: str = events_item_data
                events.append(events_item)

        enabled = self.enabled

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if url is not UNSET:
            field_dict["url"] = url
        if events is not UNSET:
            field_dict["events"] = events
        if enabled is not UNSET:
            field_dict["enabled"] = enabled

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        url = d.pop("url", UNSET)

        _events = d.pop("events", UNSET)
        events: list[EventsEnum] | Unset = UNSET
        if _events is not UNSET:
            events = []
            for events_item_data in _events:
                events_item = check_events_enum(events_item_data)

                events.append(events_item)

        enabled = d.pop("enabled", UNSET)

        webhook_change_request = cls(
            url=url,
            events=events,
            enabled=enabled,
        )

        return webhook_change_request
