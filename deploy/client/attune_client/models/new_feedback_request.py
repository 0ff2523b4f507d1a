from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.score_enum import ScoreEnum, check_score_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="NewFeedbackRequest")


@_attrs_define
class NewFeedbackRequest:
    """A score, a correction, or both.

    Attributes:
        score (ScoreEnum | Unset): * `-1` - -1
            * `0` - 0
            * `1` - 1
        correction (str | Unset):
    """

    score: ScoreEnum | Unset = UNSET
    correction: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        score: int | Unset = UNSET
        if not isinstance(self.score, Unset):
            score = self.score

        correction = self.correction

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if score is not UNSET:
            field_dict["score"] = score
        if correction is not UNSET:
            field_dict["correction"] = correction

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _score = d.pop("score", UNSET)
        score: ScoreEnum | Unset
        if isinstance(_score, Unset):
            score = UNSET
        else:
            score = check_score_enum(_score)

        correction = d.pop("correction", UNSET)

        new_feedback_request = cls(
            score=score,
            correction=correction,
        )

        return new_feedback_request
