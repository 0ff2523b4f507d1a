"""One SGLang 0.5.23 server over HTTP: generate, score, adapters, health."""

import asyncio
import hashlib
import json
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from django.conf import settings

from apps.engines.chat import chat_format
from apps.engines.replies import (
    Chunk,
    EngineBroken,
    EngineRejected,
    EngineSilent,
    EngineUnavailable,
    Reply,
    input_logprobs,
)
from apps.engines.router import passed_on
from apps.engines.wire import ASK_S, Wire, parsed
from kernel.errors import InvalidInput

_ABORT_S = 5.0


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine says of itself; its keys, which `/server_info` also lists, are left where they are."""

    boot_id: str
    model_path: str
    max_loaded_loras: int
    max_lora_rank: int
    max_loras_per_batch: int = 0
    """Distinct adapters in one batch; the bare base counts as one while it is used."""


class EngineClient:
    """Talks to one engine. Connections are opened when first used and belong to the running event loop.

    Raises EngineUnavailable (503; EngineGone, EngineSilent and AdapterMissing are kinds of it), EngineBroken
    (502), EngineBusy (429) or EngineRejected (400).
    """

    def __init__(
        self,
        url: str,
        api_key: str = "",
        admin_key: str = "",
        *,
        vocab_size: int | None = None,
        timeout_s: float = 300.0,
        router: str = "",
    ) -> None:
        """`router`: the address of a sglang-router that generation goes through, to this engine and no other.

        What the router would not pass on whole goes past it.
        """
        self.url = url.rstrip("/")
        self._vocab_size = vocab_size
        self._wire = Wire(
            self.url,
            api_key=api_key,
            admin_key=admin_key or api_key,
            timeout_s=timeout_s,
            router=router.rstrip("/"),
        )
        self._aborts: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for aborts that are on their way and close the connections."""
        if self._aborts:
            await asyncio.wait(self._aborts, timeout=_ABORT_S)
        await self._wire.close()

    async def generate(
        self,
        *,
        input_ids: Sequence[int],
        sampling: Mapping[str, Any],
        adapter: str | None = None,
        stream: bool = True,
        top_logprobs: int = 0,
    ) -> AsyncGenerator[Chunk, None]:
        """Yield the reply to `input_ids` as it comes (`stream`) or in one chunk.

        `sampling` has SGLang's names (temperature, top_p, top_k, max_new_tokens, stop …). `adapter` is an
        immutable served name; None is the bare base. Leaving the iterator early, also by cancelling,
        stops the engine's work on the request at once: close it (`aclosing`) where you may leave.
        """
        self._check_ids(input_ids)
        if sampling.get("n", 1) != 1:
            raise InvalidInput("an engine is asked for one reply at a time", field="n")
        rid = uuid4().hex
        parameters = {**_own_seed(), **sampling}
        body: dict[str, Any] = {
            "rid": rid,
            "input_ids": list(input_ids),
            "sampling_params": parameters,
            "return_logprob": True,
            "stream": stream,
            "lora_path": adapter,
        }
        if top_logprobs:
            body["top_logprobs_num"] = top_logprobs
        if self._wire.router and passed_on(parameters):
            # which engine has proven the adapter, and has a slot for it,
            # is decided here and not by the router
            body["model"] = self.url
        stop = sampling.get("stop") or ()
        reply = Reply(stop=(stop,) if isinstance(stop, str) else stop, streamed=stream)
        begun = False
        try:
            frames = self._wire.frames(body) if stream else self._wire.only_frame(body)
            async with aclosing(frames):
                async for frame in frames:
                    chunk = reply.advance(frame)
                    begun = True
                    yield chunk
            if not reply.finished:
                raise EngineBroken("the engine ended the stream in the middle of the reply")
        except (asyncio.CancelledError, GeneratorExit):
            if not reply.finished:
                self._abort_soon(rid)
            raise
        except EngineUnavailable as error:
            if begun:
                raise EngineBroken(
                    f"the engine stopped in the middle of the reply: {error.message}"
                ) from error
            raise

    async def score(
        self,
        ids: Sequence[int],
        adapter: str | None = None,
        *,
        first: int = 1,
        timeout_s: float | None = None,
    ) -> list[float]:
        """Return the log-probability of each of `ids` from place `first` (at least 1) on given
        those before, nats, at T = 1.

        What comes before `first` costs nothing where the engine has it in its prefix cache.
        """
        self._check_ids(ids)
        if not 1 <= first <= len(ids):
            raise InvalidInput(f"first lies between 1 and {len(ids)}", field="first")
        body = {
            "input_ids": list(ids),
            "sampling_params": {"max_new_tokens": 0, "temperature": 1.0},
            "return_logprob": True,
            "logprob_start_len": first - 1,
            "stream": False,
            "lora_path": adapter,
        }
        reply = await self._wire.ask("POST", "/generate", body, timeout_s=timeout_s)
        return input_logprobs(ids[first - 1 :], reply, vocab_size=self._vocabulary())

    async def load(self, name: str, path: str, *, timeout_s: float = 60.0) -> None:
        """Load the adapter in the directory `path` under `name`. Loading it again is not an error.

        A name that is loaded from another path is refused: names are immutable. Raises EngineRejected
        with the engine's reason.
        """
        present = (await self.loaded()).get(name)
        if present == path:
            return
        if present is not None:
            raise EngineRejected(f"{name} is already loaded from another place")
        await self._adapter("load", {"lora_name": name, "lora_path": path}, timeout_s)

    async def unload(self, name: str, *, timeout_s: float = 30.0) -> None:
        """Unload `name`; the engine first waits for requests that use it. Not loaded: nothing to do."""
        if name in await self.loaded():
            await self._adapter("unload", {"lora_name": name}, timeout_s)

    async def loaded(self) -> dict[str, str]:
        """Return the adapters that may be asked for now: served name to path."""
        answer = await self._wire.ask("GET", "/v1/models")
        return {card["id"]: card["root"] for card in answer.get("data", []) if card.get("parent")}

    async def ready(self) -> bool:
        """Return whether the engine takes requests; cheap. False also where nobody listens.

        Raises EngineSilent where it does not answer in time, which says neither.
        """
        try:
            async with self._wire.answer("GET", "/ready", None, timeout_s=ASK_S) as response:
                return response.status == 200
        except EngineSilent:
            raise
        except EngineUnavailable:
            return False

    async def boot_id(self) -> str:
        """Return a word that is another one after every restart."""
        return (await self.info()).boot_id

    async def info(self) -> EngineInfo:
        """Return what the engine is and when it booted."""
        said = await self._wire.ask("GET", "/server_info")
        # nothing in there is the time of the start; durations in nanoseconds and the random seed differ
        boot = json.dumps([said.get("startup_time"), said.get("random_seed")], sort_keys=True)
        return EngineInfo(
            boot_id=hashlib.sha256(boot.encode()).hexdigest()[:16],
            model_path=str(said.get("model_path") or ""),
            max_loaded_loras=int(said.get("max_loaded_loras") or 0),
            max_lora_rank=int(said.get("max_lora_rank") or 0),
            max_loras_per_batch=int(said.get("max_loras_per_batch") or 0),
        )

    def _check_ids(self, ids: Sequence[int]) -> None:
        # an id outside the vocabulary kills the server
        size = self._vocabulary()
        if not ids or min(ids) < 0 or max(ids) >= size:
            raise InvalidInput(f"token ids must be there and lie in [0, {size})", field="input_ids")

    def _vocabulary(self) -> int:
        return self._vocab_size if self._vocab_size is not None else chat_format().vocab_size

    async def _adapter(self, verb: str, body: dict[str, str], timeout_s: float) -> None:
        path = f"/{verb}_lora_adapter"
        async with self._wire.answer("POST", path, body, admin=True, timeout_s=timeout_s) as response:
            answer = parsed(await response.read())
        if response.status == 200 and answer.get("success"):
            return
        reason = str(answer.get("error_message") or answer.get("error") or f"status {response.status}")
        if verb == "load" and "already loaded" in reason:
            return  # somebody else loaded it between our look and our call
        kind = EngineRejected if response.status == 400 else EngineUnavailable
        raise kind(f"the engine did not {verb} {body['lora_name']}: {reason}"[:400])

    def _abort_soon(self, rid: str) -> None:
        # the server notices a closed connection only seconds later; told so, it stops with the next token
        task = asyncio.get_running_loop().create_task(self._abort(rid))
        self._aborts.add(task)
        task.add_done_callback(self._aborts.discard)

    async def _abort(self, rid: str) -> None:
        try:
            async with self._wire.answer(
                "POST", "/abort_request", {"rid": rid}, admin=True, timeout_s=_ABORT_S
            ) as response:
                await response.read()
        except EngineUnavailable:
            return  # the closed connection is the second way by which it learns


def _own_seed() -> dict[str, int]:
    # an engine that draws by seed gives all requests without one the same: they would all be the same draw
    return {"sampling_seed": secrets.randbits(62)} if settings.ENGINE_HONOURS_SEED else {}


@cache
def engine_client(url: str) -> EngineClient:
    """Return this process's client of the engine at `url`, with the keys of the settings."""
    return EngineClient(
        url,
        settings.ENGINE_API_KEY,
        settings.ENGINE_ADMIN_KEY,
        timeout_s=settings.ENGINE_TIMEOUT_S,
        router=settings.ENGINE_ROUTER_URL,
    )
