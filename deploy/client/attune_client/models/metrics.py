from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.range_enum import RangeEnum, check_range_enum

if TYPE_CHECKING:
    from ..models.live_since import LiveSince
    from ..models.reward_point import RewardPoint
    from ..models.share import Share
    from ..models.traffic_point import TrafficPoint


T = TypeVar("T", bound="Metrics")


@_attrs_define
class Metrics:
    """A tenant's traffic over a stretch of time: sums, and points in order of time; a point without anything is left out.
    The first token is of streamed replies, and of others where the engine says when it was.

        Attributes:
            range_ (RangeEnum): * `1d` - 1d
                * `7d` - 7d
                * `30d` - 30d
            minutes (int): That a point stands for.
            requests (int): All of them, `failed` among them.
            failed (int):
            prompt_tokens (int):
            reply_tokens (int):
            first_token_ms (Share): The median and the 95th percentile, milliseconds, each within 1 % of itself; null where
                there is none.
            latency_ms (Share): The median and the 95th percentile, milliseconds, each within 1 % of itself; null where
                there is none.
            points (list[TrafficPoint]):
            rewards (list[RewardPoint]):
            live (list[LiveSince]): Oldest first; of more than 100 each point has its last, and all of them are under
                `moves`.
    """

    range_: RangeEnum
    minutes: int
    requests: int
    failed: int
    prompt_tokens: int
    reply_tokens: int
    first_token_ms: Share
    latency_ms: Share
    points: list[TrafficPoint]
    rewards: list[RewardPoint]
    live: list[LiveSince]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        range_: str = self.range_

        minutes = self.minutes

        requests = self.requests

        failed = self.failed

        prompt_tokens = self.prompt_tokens

        reply_tokens = self.reply_tokens

        first_token_ms = self.first_token_ms.to_dict()

        latency_ms = self.latency_ms.to_dict()

        points = []
        for points_item_data in self.points:
            points_item = points_item_data.to_dict()
            points.append(points_item)

        rewards = []
        for rewards_item_data in self.rewards:
            rewards_item = rewards_item_data.to_dict()
            rewards.append(rewards_item)

        live = []
        for live_item_data in self.live:
            live_item = live_item_data.to_dict()
            live.append(live_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "range": range_,
                "minutes": minutes,
                "requests": requests,
                "failed": failed,
                "prompt_tokens": prompt_tokens,
                "reply_tokens": reply_tokens,
                "first_token_ms": first_token_ms,
                "latency_ms": latency_ms,
                "points": points,
                "rewards": rewards,
                "live": live,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.live_since import LiveSince  # noqa: PLC0415
        from ..models.reward_point import RewardPoint  # noqa: PLC0415
        from ..models.share import Share  # noqa: PLC0415
        from ..models.traffic_point import TrafficPoint  # noqa: PLC0415

        d = dict(src_dict)
        range_ = check_range_enum(d.pop("range"))

        minutes = d.pop("minutes")

        requests = d.pop("requests")

        failed = d.pop("failed")

        prompt_tokens = d.pop("prompt_tokens")

        reply_tokens = d.pop("reply_tokens")

        first_token_ms = Share.from_dict(d.pop("first_token_ms"))

        latency_ms = Share.from_dict(d.pop("latency_ms"))

        points = []
        _points = d.pop("points")
        for points_item_data in _points:
            points_item = TrafficPoint.from_dict(points_item_data)

            points.append(points_item)

        rewards = []
        _rewards = d.pop("rewards")
        for rewards_item_data in _rewards:
            rewards_item = RewardPoint.from_dict(rewards_item_data)

            rewards.append(rewards_item)

        live = []
        _live = d.pop("live")
        for live_item_data in _live:
            live_item = LiveSince.from_dict(live_item_data)

            live.append(live_item)

        metrics = cls(
            range_=range_,
            minutes=minutes,
            requests=requests,
            failed=failed,
            prompt_tokens=prompt_tokens,
            reply_tokens=reply_tokens,
            first_token_ms=first_token_ms,
            latency_ms=latency_ms,
            points=points,
            rewards=rewards,
            live=live,
        )

        metrics.additional_properties = d
        return metrics

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
