"""The user's only way in: the public API, through the official `openai` client."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import httpx
import openai
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam

Purpose = Literal["talk", "measure", "trickle"]


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as the client saw it. Durations are seconds; `started` is Unix time."""

    text: str
    finish_reason: str | None
    version: int
    started: float
    first_token_s: float
    seconds: float
    turn_id: str
    tokens: int = 0
    """The API's own count."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that did not end well, and what the client was told."""

    purpose: Purpose
    error: str
    started: float


@dataclass(slots=True)
class RequestLog:
    """Every request of a scripted user: nothing is retried behind their back."""

    replies: list[tuple[Purpose, Reply]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """How many requests have ended."""
        return len(self.replies) + len(self.failures)


class RequestFailed(Exception):
    """A request failed; it is already in the log."""


class Chat:
    """Streams chats from `/v1` and keeps the log. `max_tokens` is the limit of every reply."""

    def __init__(self, *, base_url: str, api_key: str, log: RequestLog, timeout_s: float = 180.0) -> None:
        self._client = AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0, timeout=timeout_s)
        self.log = log

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def live_version(self, policy: str) -> int:
        """Return the number of the version that answers for a policy now;
        raises `RequestFailed` where nobody says."""
        try:
            models = await self._client.models.list()
        except (openai.OpenAIError, httpx.HTTPError) as error:
            raise RequestFailed(f"{type(error).__name__}: {error}"[:300]) from error
        found = {model.id: model for model in models.data}
        if policy not in found:
            raise RequestFailed(f"there is no model {policy}")
        return int(getattr(found[policy], "version", 0))

    async def preferences(self, policy: str) -> dict[str, int]:
        """Return how many preferences of the key's person `/v1/memory` lists,
        by state; raises `RequestFailed`."""
        try:
            listed = await self._client.get(
                "/memory", cast_to=httpx.Response, options={"params": {"model": policy, "limit": "100"}}
            )
            return dict(Counter(str(one["state"]) for one in listed.json()["data"]))
        except (openai.OpenAIError, httpx.HTTPError, ValueError, KeyError) as error:
            raise RequestFailed(f"{type(error).__name__}: {error}"[:300]) from error

    async def ask(
        self,
        messages: Sequence[ChatCompletionMessageParam],
        *,
        model: str,
        purpose: Purpose,
        max_tokens: int,
        temperature: float,
        session: str,
        memory: bool | None = None,
    ) -> Reply:
        """Return the reply to `messages`; raises `RequestFailed` for anything but a whole one.

        `memory` says whether the prompt is told what is remembered of the key's person; None leaves it to the
        platform.
        """
        started = time.time()
        try:
            headers = {"X-Session-Id": session}
            if memory is not None:
                headers["X-Memory"] = "on" if memory else "off"
            reply = await self._stream(messages, model, max_tokens, temperature, headers)
        except (openai.OpenAIError, httpx.HTTPError, ValueError) as error:
            # a connection that breaks within a stream is httpx's error:
            # the client wraps only what comes before
            failure = Failure(purpose, f"{type(error).__name__}: {error}"[:300], started)
            self.log.failures.append(failure)
            raise RequestFailed(failure.error) from error
        self.log.replies.append((purpose, reply))
        return reply

    async def _stream(
        self,
        messages: Sequence[ChatCompletionMessageParam],
        model: str,
        max_tokens: int,
        temperature: float,
        headers: Mapping[str, str],
    ) -> Reply:
        started, clock = time.time(), time.perf_counter()
        raw = await self._client.chat.completions.with_raw_response.create(
            model=model,
            messages=list(messages),
            max_tokens=max_tokens,
            temperature=temperature,
            stream=True,
            stream_options={"include_usage": True},
            extra_headers=headers,
        )
        text, finish, first, tokens = "", None, None, 0
        async for chunk in raw.parse():
            tokens = chunk.usage.completion_tokens if chunk.usage else tokens
            for choice in chunk.choices:
                if choice.delta.content:
                    first = first or time.perf_counter()
                    text += choice.delta.content
                finish = choice.finish_reason or finish
        if finish is None:
            raise ValueError("the stream ended without a finish reason")
        ended = time.perf_counter()
        return Reply(
            text=text,
            finish_reason=finish,
            version=int(raw.headers["X-Adapter-Version"]),
            started=started,
            first_token_s=(first or ended) - clock,
            seconds=ended - clock,
            turn_id=raw.headers["X-Turn-Id"],
            tokens=tokens,
        )
