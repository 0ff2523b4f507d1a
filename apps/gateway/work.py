"""One admitted turn while the engine writes it: what came so far, and how it ends in the ledger."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from django.conf import settings

from apps.conversations.services import Admitted, Generation, aborting, completing, failing, moved
from apps.engines import registry
from apps.engines.client import engine_client
from apps.engines.replies import (
    AdapterMissing,
    Chunk,
    EngineBroken,
    EngineBusy,
    EngineGone,
    EngineSilent,
    EngineUnavailable,
)
from apps.engines.selectors import steady_choice
from apps.engines.slots import Seat, adapter_slots
from apps.engines.slots.sharing import shared_reply
from apps.gateway.admission import Admission
from apps.gateway.errors import Internal
from apps.gateway.process import Process
from apps.gateway.tool_calls import CALL_BEGINS, ToolCallReader
from kernel.errors import AttuneError

logger = logging.getLogger(__name__)

# the names under which SGLang knows them; the rest are the same
_SGLANG = {"max_tokens": "max_new_tokens", "seed": "sampling_seed"}


class Work:
    """Exactly one of `complete`, `fail` and `abandon` ends it; what comes after that changes nothing."""

    def __init__(self, *, process: Process, admission: Admission, admitted: Admitted, started: float) -> None:
        self.generation = Generation(spans=[(0, admission.target.served_name)])
        self.top_logprobs: list[list[tuple[int, float]]] = []
        self.settled = False
        self.engine = admission.engine
        """The address of the engine that is asked."""
        self._begun = False
        self._reader = ToolCallReader() if admission.ask.tools else None
        self._process = process
        self._admission = admission
        self._admitted = admitted
        self._started = started

    async def chunks(self, *, stream: bool) -> AsyncGenerator[Chunk, None]:
        """Yield what the engine writes as it comes. Leaving early stops the engine.

        An engine that is gone or refuses before the first chunk is left for another one that has the version,
        once. Raises what the engine's client raises; nothing came before the first chunk.
        """
        while True:
            try:
                async with adapter_slots().seat(
                    engine=self.engine,
                    adapter=self._admission.target.adapter,
                    tenant=self._admitted.tenant_id,
                ) as seat:
                    source = self._source(seat, stream=stream)
                    async with aclosing(source):
                        async for chunk in source:
                            self._take(chunk)
                            if chunk.finish_reason == "abort":
                                raise EngineBroken("the engine aborted the request")
                            yield chunk
            except (EngineUnavailable, EngineBusy) as error:
                if not await self._moved(error):
                    raise
            else:
                return

    def _source(self, seat: Seat, *, stream: bool) -> AsyncGenerator[Chunk, None]:
        self._process.uses_engine(self.engine)
        prompt = self._admitted.prompt
        return shared_reply(
            engine_client(self.engine),
            seat,
            input_ids=prompt.ids,
            sampling=engine_sampling(self._admission.sampling, prompt_tokens=len(prompt.ids)),
            adapter=self._admission.target.adapter,
            stream=stream,
            top_logprobs=self._admission.ask.top_logprobs,
        )

    async def _moved(self, error: AttuneError) -> bool:
        """Return whether the request may be sent to another engine,
        and which is one that it never was sent to.

        Not one that was silent: the client has waited long enough, and the engine may yet be writing.
        """
        others = [url for url in self._admission.engines if url != self.engine]
        if (
            self._begun
            or self.engine != self._admission.engine
            or not others
            or isinstance(error, EngineSilent)
        ):
            return False
        self._report(error)
        self._process.counters.moved.inc()
        self.engine = steady_choice(others, self._admission.target.adapter, adapter_slots().running)
        await self._process.database(
            moved,
            tenant_id=self._admitted.tenant_id,
            turn_id=self._admitted.turn_id,
            engine_id=self._admission.engines[self.engine],
        )
        return True

    def _report(self, error: Exception) -> None:
        if isinstance(error, EngineGone | AdapterMissing):
            asked, adapter = self.engine, self._admission.target.adapter
            self._process.later(
                self._process.database(registry.report, url=asked, served_name=adapter, error=error)
            )

    def visible(self, chunk: Chunk) -> str:
        """Return the text of a chunk that a client may have now:
        a tool call is given out when it is whole."""
        return chunk.text if self._reader is None else self._reader.push(chunk.text)

    def finish(self) -> str:
        """Take the tool calls out of the whole text; returns the text that `visible` held back."""
        if self._reader is None:
            return ""
        rest, calls = self._reader.finish()
        if calls:
            written = self.generation
            written.text = written.text[: written.text.index(CALL_BEGINS)].rstrip() + rest
            written.tool_calls = calls
        return rest

    @property
    def finish_reason(self) -> str:
        """Why the reply ended, in OpenAI's words."""
        return "tool_calls" if self.generation.tool_calls else self.generation.finish_reason

    async def complete(self) -> None:
        """Commit the whole reply; returns when it is durable."""
        self.generation.latency_ms = self._elapsed_ms()
        await self._process.ledger.run(
            completing(
                tenant_id=self._admitted.tenant_id,
                turn_id=self._admitted.turn_id,
                generation=self.generation,
            )
        )
        self.settled = True
        self._process.counters.turn("complete")

    async def fail(self, error: Exception) -> AttuneError:
        """Commit that the turn failed; returns what the client may know of it."""
        if not isinstance(error, AttuneError):
            logger.error("turn %s failed", self._admitted.turn_id, exc_info=error)
        shown = error if isinstance(error, AttuneError) else Internal("Something broke on our side.")
        self.generation.latency_ms = self._elapsed_ms()
        self.settled = True
        self._process.counters.turn("failed")
        self._report(error)
        try:
            await self._process.ledger.run(
                failing(
                    tenant_id=self._admitted.tenant_id,
                    turn_id=self._admitted.turn_id,
                    error=f"{shown.code}: {shown.message}",
                    generation=self.generation,
                )
            )
        except AttuneError:
            # upkeep marks turns that stayed pending
            logger.exception("turn %s could not be marked as failed", self._admitted.turn_id)
        return shown

    def abandon(self) -> None:
        """The client is gone: keep the part that was written, marked, apart from the cancelled request."""
        if not self.settled:
            self.settled = True
            self._process.counters.turn("aborted")
            self.generation.latency_ms = self._elapsed_ms()
            self._process.later(
                self._process.ledger.run(
                    aborting(
                        tenant_id=self._admitted.tenant_id,
                        turn_id=self._admitted.turn_id,
                        generation=self.generation,
                    )
                )
            )

    def _take(self, chunk: Chunk) -> None:
        written, self._begun = self.generation, True
        if chunk.output_ids and not written.output_ids:
            written.first_token_ms = self._first_token_ms(chunk)
        written.text += chunk.text
        written.output_ids.extend(chunk.output_ids)
        written.output_logprobs.extend(chunk.output_logprobs)
        self.top_logprobs.extend(chunk.top_logprobs)
        written.misaligned = chunk.misaligned
        written.finish_reason = chunk.finish_reason or ""
        written.usage = {
            "prompt_tokens": len(self._admitted.prompt.ids),
            "completion_tokens": len(written.output_ids),
            "cached_tokens": chunk.usage.cached_tokens,
        }
        self._admission.permit.used = len(self._admitted.prompt.ids) + len(written.output_ids)

    def _first_token_ms(self, chunk: Chunk) -> float | None:
        """Return when the first token was there, by the first chunk that has any; None where nothing says it.

        A reply that is not streamed comes when its last token is there: that is no time of the first one.
        """
        elapsed, ago = self._elapsed_ms(), chunk.first_token_ago_s
        # an engine that says more than has passed since the request came does not know
        return None if ago is None or ago * 1000 > elapsed else elapsed - ago * 1000

    def _elapsed_ms(self) -> float:
        return (time.monotonic() - self._started) * 1000


def engine_sampling(sampling: Any, *, prompt_tokens: int) -> dict[str, Any]:
    """Return SGLang's sampling parameters; the reply gets what room the context has left."""
    asked = {_SGLANG.get(name, name): value for name, value in sampling.items()}
    asked["max_new_tokens"] = min(asked["max_new_tokens"], settings.CONTEXT_LENGTH - prompt_tokens)
    return asked


async def abort_when_admitted(process: Process, admission: "asyncio.Future[Admission]") -> None:
    """End the turn of a request whose client left while it was being admitted."""
    try:
        outcome = (await admission).outcome
    except AttuneError:
        return
    if isinstance(outcome, Admitted):
        await process.ledger.run(
            aborting(tenant_id=outcome.tenant_id, turn_id=outcome.turn_id, generation=Generation())
        )
