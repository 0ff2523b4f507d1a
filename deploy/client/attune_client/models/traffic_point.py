from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.share import Share


T = TypeVar("T", bound="TrafficPoint")


@_attrs_define
class TrafficPoint:
    """The requests of one point in time: of `minutes` from its beginning on.

    Attributes:
        at (datetime.datetime):
        requests (int): All of them, `failed` among them.
        failed (int):
        reply_tokens (int):
        first_token_ms (Share): The median and the 95th percentile, milliseconds, each within 1 % of itself; null where
            there is none.
    """

    at: datetime.datetime
    requests: int
    failed: int
    reply_tokens: int
    first_token_ms: Share
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        requests = self.requests

        failed = self.failed

        reply_tokens = self.reply_tokens

        first_token_ms = self.first_token_ms.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
                "requests": requests,
                "failed": failed,
                "reply_tokens": reply_tokens,
                "first_token_ms": first_token_ms,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.share import Share  # noqa: PLC0415

        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        requests = d.pop("requests")

        failed = d.pop("failed")

        reply_tokens = d.pop("reply_tokens")

        first_token_ms = Share.from_dict(d.pop("first_token_ms"))

        traffic_point = cls(
            at=at,
            requests=requests,
            failed=failed,
            reply_tokens=reply_tokens,
            first_token_ms=first_token_ms,
        )

        traffic_point.additional_properties = d
        return traffic_point

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
