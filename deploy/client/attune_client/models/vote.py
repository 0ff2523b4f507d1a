from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="Vote")


@_attrs_define
class Vote:
    """One answer of a judge.

    Attributes:
        number (int):
        latency_ms (float):
        attempt (int | Unset): Of the judgement; the last one counts.
        prompt_version (str | Unset):
        score (int | None | Unset):
        text (str | Unset): The judge's words.
        abstained_because (str | Unset):
        prompt_tokens (int | Unset): That it read.
        tokens (int | Unset): That it wrote.
    """

    number: int
    latency_ms: float
    attempt: int | Unset = UNSET
    prompt_version: str | Unset = UNSET
    score: int | None | Unset = UNSET
    text: str | Unset = UNSET
    abstained_because: str | Unset = UNSET
    prompt_tokens: int | Unset = UNSET
    tokens: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        number = self.number

        latency_ms = self.latency_ms

        attempt = self.attempt

        prompt_version = self.prompt_version

        score: int | None | Unset
        if isinstance(self.score, Unset):
            score = UNSET
        else:
            score = self.score

        text = self.text

        abstained_because = self.abstained_because

        prompt_tokens = self.prompt_tokens

        tokens = self.tokens

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "number": number,
                "latency_ms": latency_ms,
            }
        )
        if attempt is not UNSET:
            field_dict["attempt"] = attempt
        if prompt_version is not UNSET:
            field_dict["prompt_version"] = prompt_version
        if score is not UNSET:
            field_dict["score"] = score
        if text is not UNSET:
            field_dict["text"] = text
        if abstained_because is not UNSET:
            field_dict["abstained_because"] = abstained_because
        if prompt_tokens is not UNSET:
            field_dict["prompt_tokens"] = prompt_tokens
        if tokens is not UNSET:
            field_dict["tokens"] = tokens

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        number = d.pop("number")

        latency_ms = d.pop("latency_ms")

        attempt = d.pop("attempt", UNSET)

        prompt_version = d.pop("prompt_version", UNSET)

        def _parse_score(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        score = _parse_score(d.pop("score", UNSET))

        text = d.pop("text", UNSET)

        abstained_because = d.pop("abstained_because", UNSET)

        prompt_tokens = d.pop("prompt_tokens", UNSET)

        tokens = d.pop("tokens", UNSET)

        vote = cls(
            number=number,
            latency_ms=latency_ms,
            attempt=attempt,
            prompt_version=prompt_version,
            score=score,
            text=text,
            abstained_because=abstained_because,
            prompt_tokens=prompt_tokens,
            tokens=tokens,
        )

        vote.additional_properties = d
        return vote

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
