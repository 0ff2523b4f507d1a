from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.delivery_state_enum import DeliveryStateEnum, check_delivery_state_enum
from ..models.event_enum import EventEnum, check_event_enum

if TYPE_CHECKING:
    from ..models.attempt import Attempt


T = TypeVar("T", bound="Delivery")


@_attrs_define
class Delivery:
    """One alert on its way to one endpoint.

    Attributes:
        id (UUID):
        webhook (UUID):
        event (EventEnum): * `version.live` - A policy answers from another version
            * `version.refused` - A version did not pass its checks
            * `run.failed` - A training run failed
            * `drift.crossed` - A drift gauge crossed its bound
            * `policy.paused` - Training of a policy is paused
            * `policy.resumed` - Training of a policy goes on
            * `endpoint.disabled` - A webhook endpoint is switched off
            * `endpoint.test` - Somebody tries a webhook endpoint
        words (str):
        state (DeliveryStateEnum): * `pending` - Pending
            * `delivered` - Delivered
            * `dead` - Dead
        reason (str): Why the last attempt failed.
        attempts (int): Claims so far; an older holder's result counts for nothing.
        tries (list[Attempt]):
        due_at (datetime.datetime):
        delivered_at (datetime.datetime | None):
        created_at (datetime.datetime):
    """

    id: UUID
    webhook: UUID
    event: EventEnum
    words: str
    state: DeliveryStateEnum
    reason: str
    attempts: int
    tries: list[Attempt]
    due_at: datetime.datetime
    delivered_at: datetime.datetime | None
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        webhook = str(self.webhook)

        event: str = self.event

        words = self.words

        state: str = self.state

        reason = self.reason

        attempts = self.attempts

        tries = []
        for tries_item_data in self.tries:
            tries_item = tries_item_data.to_dict()
            tries.append(tries_item)

        due_at = self.due_at.isoformat()

        delivered_at: None | str
        if isinstance(self.delivered_at, datetime.datetime):
            delivered_at = self.delivered_at.isoformat()
        else:
            delivered_at = self.delivered_at

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "webhook": webhook,
                "event": event,
                "words": words,
                "state": state,
                "reason": reason,
                "attempts": attempts,
                "tries": tries,
                "due_at": due_at,
                "delivered_at": delivered_at,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.attempt import Attempt  # noqa: PLC0415

        d = dict(src_dict)
        id = UUID(d.pop("id"))

        webhook = UUID(d.pop("webhook"))

        event = check_event_enum(d.pop("event"))

        words = d.pop("words")

        state = check_delivery_state_enum(d.pop("state"))

        reason = d.pop("reason")

        attempts = d.pop("attempts")

        tries = []
        _tries = d.pop("tries")
        for tries_item_data in _tries:
            tries_item = Attempt.from_dict(tries_item_data)

            tries.append(tries_item)

        due_at = datetime.datetime.fromisoformat(d.pop("due_at"))

        def _parse_delivered_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                delivered_at_type_0 = datetime.datetime.fromisoformat(data)

                return delivered_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        delivered_at = _parse_delivered_at(d.pop("delivered_at"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        delivery = cls(
            id=id,
            webhook=webhook,
            event=event,
            words=words,
            state=state,
            reason=reason,
            attempts=attempts,
            tries=tries,
            due_at=due_at,
            delivered_at=delivered_at,
            created_at=created_at,
        )

        delivery.additional_properties = d
        return delivery

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
