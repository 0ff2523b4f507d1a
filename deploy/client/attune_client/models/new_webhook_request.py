from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.events_enum import EventsEnum, check_events_enum

T = TypeVar("T", bound="NewWebhookRequest")


@_attrs_define
class NewWebhookRequest:
    """An endpoint to be made.

    Attributes:
        url (str): https, and public.
        events (list[EventsEnum]):
    """

    url: str
    events: list[EventsEnum]

    def to_dict(self) -> dict[str, Any]:
        url = self.url

        events = []
        for events_item_data in self.events:
            events_item: str = events_item_data
            events.append(events_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "url": url,
                "events": events,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        url = d.pop("url")

        events = []
        _events = d.pop("events")
        for events_item_data in _events:
            events_item = check_events_enum(events_item_data)

            events.append(events_item)

        new_webhook_request = cls(
            url=url,
            events=events,
        )

        return new_webhook_request
