from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.prompt_source_enum import PromptSourceEnum, check_prompt_source_enum
from ..models.turn_kind_enum import TurnKindEnum, check_turn_kind_enum
from ..models.turn_state_enum import TurnStateEnum, check_turn_state_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="Turn")


@_attrs_define
class Turn:
    """A turn, whole: the messages, the exact tokens and what came next.

    Attributes:
        id (UUID):
        session (UUID):
        previous (None | UUID): The turn that this one goes on from.
        policy (UUID):
        kind (TurnKindEnum): * `live` - Live
            * `rollout` - Rollout
            * `shadow` - Shadow
            * `evaluation` - Evaluation
        side (bool): Served and stored, never trained on.
        state (TurnStateEnum): * `pending` - Pending
            * `complete` - Complete
            * `aborted` - Aborted
            * `failed` - Failed
        finish_reason (str):
        usage (Any):
        error (str):
        prompt_source (PromptSourceEnum): * `first` - First
            * `extended` - Extended
            * `rendered` - Rendered
        prompt_reason (str):
        first_token_ms (float | None): From the request to the first token; null where none came, and where the reply
            was not streamed and the engine does not say.
        latency_ms (float | None):
        created_at (datetime.datetime):
        completed_at (datetime.datetime | None):
        next_state_at (datetime.datetime | None):
        messages (Any): The whole request's messages, canonical.
        tools (Any):
        reply (Any): The assistant's message as the client got it.
        next_state (Any): Every message that the next request added after the reply.
        sampling (Any): temperature, top_p, top_k, penalties, seed, max_tokens …
        template_kwargs (Any):
        prompt_ids (list[int]):
        output_ids (list[int]):
        output_logprobs (list[float]): At the sampled temperature, nats.
        spans (Any): [[first token, served name]…]: which version wrote what.
        version (int | Unset): 0 is the bare base. Default: 0.
    """

    id: UUID
    session: UUID
    previous: None | UUID
    policy: UUID
    kind: TurnKindEnum
    side: bool
    state: TurnStateEnum
    finish_reason: str
    usage: Any
    error: str
    prompt_source: PromptSourceEnum
    prompt_reason: str
    first_token_ms: float | None
    latency_ms: float | None
    created_at: datetime.datetime
    completed_at: datetime.datetime | None
    next_state_at: datetime.datetime | None
    messages: Any
    tools: Any
    reply: Any
    next_state: Any
    sampling: Any
    template_kwargs: Any
    prompt_ids: list[int]
    output_ids: list[int]
    output_logprobs: list[float]
    spans: Any
    version: int | Unset = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        session = str(self.session)

        previous: None | str
        if isinstance(self.previous, UUID):
            previous = str(self.previous)
        else:
            previous = self.previous

        policy = str(self.policy)

        kind: str = self.kind

        side = self.side

        state: str = self.state

        finish_reason = self.finish_reason

        usage = self.usage

        error = self.error

        prompt_source: str = self.prompt_source

        prompt_reason = self.prompt_reason

        first_token_ms: float | None
        first_token_ms = self.first_token_ms

        latency_ms: float | None
        latency_ms = self.latency_ms

        created_at = self.created_at.isoformat()

        completed_at: None | str
        if isinstance(self.completed_at, datetime.datetime):
            completed_at = self.completed_at.isoformat()
        else:
            completed_at = self.completed_at

        next_state_at: None | str
        if isinstance(self.next_state_at, datetime.datetime):
            next_state_at = self.next_state_at.isoformat()
        else:
            next_state_at = self.next_state_at

        messages = self.messages

        tools = self.tools

        reply = self.reply

        next_state = self.next_state

        sampling = self.sampling

        template_kwargs = self.template_kwargs

        prompt_ids = self.prompt_ids

        output_ids = self.output_ids

        output_logprobs = self.output_logprobs

        spans = self.spans

        version = self.version

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "session": session,
                "previous": previous,
                "policy": policy,
                "kind": kind,
                "side": side,
                "state": state,
                "finish_reason": finish_reason,
                "usage": usage,
                "error": error,
                "prompt_source": prompt_source,
                "prompt_reason": prompt_reason,
                "first_token_ms": first_token_ms,
                "latency_ms": latency_ms,
                "created_at": created_at,
                "completed_at": completed_at,
                "next_state_at": next_state_at,
                "messages": messages,
                "tools": tools,
                "reply": reply,
                "next_state": next_state,
                "sampling": sampling,
                "template_kwargs": template_kwargs,
                "prompt_ids": prompt_ids,
                "output_ids": output_ids,
                "output_logprobs": output_logprobs,
                "spans": spans,
            }
        )
        if version is not UNSET:
            field_dict["version"] = version

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = UUID(d.pop("id"))

        session = UUID(d.pop("session"))

        def _parse_previous(data: object) -> None | UUID:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                previous_type_0 = UUID(data)

                return previous_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | UUID, data)

        previous = _parse_previous(d.pop("previous"))

        policy = UUID(d.pop("policy"))

        kind = check_turn_kind_enum(d.pop("kind"))

        side = d.pop("side")

        state = check_turn_state_enum(d.pop("state"))

        finish_reason = d.pop("finish_reason")

        usage = d.pop("usage")

        error = d.pop("error")

        prompt_source = check_prompt_source_enum(d.pop("prompt_source"))

        prompt_reason = d.pop("prompt_reason")

        def _parse_first_token_ms(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        first_token_ms = _parse_first_token_ms(d.pop("first_token_ms"))

        def _parse_latency_ms(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        latency_ms = _parse_latency_ms(d.pop("latency_ms"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_completed_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                completed_at_type_0 = datetime.datetime.fromisoformat(data)

                return completed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        completed_at = _parse_completed_at(d.pop("completed_at"))

        def _parse_next_state_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                next_state_at_type_0 = datetime.datetime.fromisoformat(data)

                return next_state_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        next_state_at = _parse_next_state_at(d.pop("next_state_at"))

        messages = d.pop("messages")

        tools = d.pop("tools")

        reply = d.pop("reply")

        next_state = d.pop("next_state")

        sampling = d.pop("sampling")

        template_kwargs = d.pop("template_kwargs")

        prompt_ids = cast(list[int], d.pop("prompt_ids"))

        output_ids = cast(list[int], d.pop("output_ids"))

        output_logprobs = cast(list[float], d.pop("output_logprobs"))

        spans = d.pop("spans")

        version = d.pop("version", UNSET)

        turn = cls(
            id=id,
            session=session,
            previous=previous,
            policy=policy,
            kind=kind,
            side=side,
            state=state,
            finish_reason=finish_reason,
            usage=usage,
            error=error,
            prompt_source=prompt_source,
            prompt_reason=prompt_reason,
            first_token_ms=first_token_ms,
            latency_ms=latency_ms,
            created_at=created_at,
            completed_at=completed_at,
            next_state_at=next_state_at,
            messages=messages,
            tools=tools,
            reply=reply,
            next_state=next_state,
            sampling=sampling,
            template_kwargs=template_kwargs,
            prompt_ids=prompt_ids,
            output_ids=output_ids,
            output_logprobs=output_logprobs,
            spans=spans,
            version=version,
        )

        turn.additional_properties = d
        return turn

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
