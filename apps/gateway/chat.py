"""`POST /v1/chat/completions`: one request's way through the gateway."""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from apps.conversations.models import Turn, TurnState
from apps.conversations.services import Admitted, Generation, Repeated, ending_lost, failing
from apps.engines.replies import Chunk
from apps.gateway.admission import Admission, ReadBody, admit, stored_reply
from apps.gateway.asgi import process_of
from apps.gateway.models_served import Target
from apps.gateway.parameters import read_chat_request
from apps.gateway.process import Process, Slot
from apps.gateway.replies import ReplyShape, Shape, logprobs_object
from apps.gateway.responses_replies import ResponseShape
from apps.gateway.responses_request import read_responses_request
from apps.gateway.views import endpoint
from apps.gateway.work import Work, abort_when_admitted
from kernel.errors import Conflict

R = TypeVar("R", bound=HttpResponseBase)

_WAIT_FOR_TWIN_S = 20.0
_TAKE_OVER_AFTER_S = 5.0
_LOOK_EVERY_S = 0.25


@dataclass(frozen=True, slots=True)
class Api:
    """One of the two ways in which clients ask for the same."""

    read: ReadBody
    shape: Callable[..., ReplyShape]


CHAT = Api(read_chat_request, Shape.of)
RESPONSES = Api(read_responses_request, ResponseShape.of)


@endpoint("POST")
async def completions(request: HttpRequest) -> HttpResponseBase:
    """Answer a chat. The reply is durable before its last byte is sent."""
    return await _answered(request, CHAT)


@endpoint("POST")
async def responses(request: HttpRequest) -> HttpResponseBase:
    """Answer the same in the words of OpenAI's newer API."""
    return await _answered(request, RESPONSES)


async def _answered(request: HttpRequest, api: Api) -> HttpResponseBase:
    started = time.monotonic()
    process = process_of(request)
    slot, handed_on = process.take_slot(), False
    try:
        admission = await _admitted(process, slot, api, request)
        while isinstance(admission.outcome, Repeated):
            turn = await process.database(
                stored_reply, tenant_id=admission.outcome.tenant_id, turn_id=admission.outcome.turn_id
            )
            if turn is not None:
                return _replay(api, admission, admission.outcome, turn)
            # deleted in this moment: there is nothing any more that the request repeats
            admission = await _admitted(process, slot, api, request)
        work = Work(process=process, admission=admission, admitted=admission.outcome, started=started)
        if admission.ask.stream:
            response = await _streamed(process, slot, api, work, admission)
            handed_on = True
            return response
        return await _whole(api, work, admission)
    finally:
        if not handed_on:
            slot.release()


async def _admitted(process: Process, slot: Slot, api: Api, request: HttpRequest) -> Admission:
    """Return the admission; the repetition of a request that still runs waits for that one to end.

    Where the process that answers that one is gone, the repetition is answered itself. A client that says
    that it tries again has given the first try up: where that one does not end by itself, the repetition
    takes over too.
    """
    started = time.monotonic()
    while True:
        admission = await _try_to_admit(process, slot, api, request)
        outcome = admission.outcome
        if isinstance(outcome, Admitted) or outcome.state == TurnState.COMPLETE:
            return admission
        if await process.ledger.run(ending_lost(tenant_id=outcome.tenant_id, turn_id=outcome.turn_id)):
            continue
        waited = time.monotonic() - started
        if admission.is_retry and waited > _TAKE_OVER_AFTER_S:
            await process.ledger.run(
                failing(
                    tenant_id=outcome.tenant_id,
                    turn_id=outcome.turn_id,
                    error="given up by its client, who sent it again",
                    generation=Generation(),
                )
            )
        elif waited > _WAIT_FOR_TWIN_S:
            raise Conflict(
                "The same request is still being answered.", code="request_in_progress", retry_after_s=1.0
            )
        else:
            await asyncio.sleep(_LOOK_EVERY_S)


async def _try_to_admit(process: Process, slot: Slot, api: Api, request: HttpRequest) -> Admission:
    admitting = asyncio.ensure_future(
        admit(process=process, slot=slot, read=api.read, headers=request.headers, body=request.body)
    )
    try:
        return await asyncio.shield(admitting)
    except asyncio.CancelledError:
        process.later(abort_when_admitted(process, admitting))
        raise


async def _whole(api: Api, work: Work, admission: Admission) -> HttpResponse:
    try:
        async with aclosing(work.chunks(stream=False)) as chunks:
            async for chunk in chunks:
                work.visible(chunk)
        work.finish()
        await work.complete()
    except asyncio.CancelledError:
        work.abandon()
        raise
    except Exception as error:
        raise await work.fail(error) from error
    written = work.generation
    body = _shape(api, admission).whole(
        message=written.reply(),
        finish_reason=work.finish_reason,
        usage=written.usage,
        logprobs=_logprobs(admission, written.output_ids, written.output_logprobs, work.top_logprobs),
    )
    response = HttpResponse(body, content_type="application/json")
    return _with_headers(response, admission, admission.target, admission.outcome)


async def _streamed(
    process: Process, slot: Slot, api: Api, work: Work, admission: Admission
) -> StreamingHttpResponse:
    """Return the response once the engine has begun: until then a failure still has its own status."""
    chunks = work.chunks(stream=True)
    try:
        first = await anext(chunks)
    except asyncio.CancelledError:
        work.abandon()
        raise
    except Exception as error:
        raise await work.fail(error) from error
    events = _events(work, chunks, first, admission, _shape(api, admission))
    response = StreamingHttpResponse(
        EventStream(process, slot, work, events, chunks), content_type="text/event-stream"
    )
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return _with_headers(response, admission, admission.target, admission.outcome)


async def _events(
    work: Work, chunks: AsyncGenerator[Chunk, None], first: Chunk, admission: Admission, shape: ReplyShape
) -> AsyncGenerator[bytes, None]:
    def rendered(chunk: Chunk) -> bytes:
        logprobs = _logprobs(admission, chunk.output_ids, chunk.output_logprobs, chunk.top_logprobs)
        text = work.visible(chunk)
        return shape.content(text, logprobs) if text or logprobs else b""

    try:
        async with aclosing(chunks):
            yield shape.opening() + rendered(first)
            async for chunk in chunks:
                if piece := rendered(chunk):
                    yield piece
        if rest := work.finish():
            yield shape.content(rest, None)
        await work.complete()
    except (asyncio.CancelledError, GeneratorExit):
        work.abandon()
        raise
    except Exception as error:
        yield shape.failure(await work.fail(error))
        return
    calls = work.generation.tool_calls
    yield (shape.calls(calls) if calls else b"") + shape.closing(work.finish_reason, work.generation.usage)


class EventStream:
    """A reply's events, with an end that is noticed however the response ends.

    Django calls `close` (in another thread) when it is done with a response, also where the client left
    while a piece was being written to it and the generator is suspended, or was never started.
    """

    def __init__(
        self,
        process: Process,
        slot: Slot,
        work: Work,
        events: AsyncGenerator[bytes, None],
        chunks: AsyncGenerator[Chunk, None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._slot = slot
        slot.ends = self.end
        self._work = work
        self._events = events
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._events

    def close(self) -> None:
        """End everything that is still going on. Safe from any thread, any number of times."""
        self._loop.call_soon_threadsafe(lambda: self._process.later(self.end()))

    async def end(self) -> None:
        """End everything that is still going on."""
        self._slot.release()
        await self._events.aclose()
        await self._chunks.aclose()
        self._work.abandon()


def _replay(api: Api, admission: Admission, repeated: Repeated, turn: Turn) -> HttpResponseBase:
    """Return the stored reply of the turn that a request repeats;
    it speaks of the version that answered then."""
    target = admission.target.at(turn.version)
    ask, reply = admission.ask, turn.reply or {}
    shape = api.shape(
        turn_id=turn.id,
        created=_created(turn.id),
        ask=ask,
        fingerprint=target.served_name,
    )
    logprobs = _logprobs(admission, turn.output_ids, turn.output_logprobs)
    calls = reply.get("tool_calls")
    finish_reason = "tool_calls" if calls else turn.finish_reason
    if ask.stream:
        body = shape.opening()
        if reply.get("content"):
            body += shape.content(reply["content"], logprobs)
        body += (shape.calls(calls) if calls else b"") + shape.closing(finish_reason, turn.usage)
        response = HttpResponse(body, content_type="text/event-stream")
    else:
        body = shape.whole(message=reply, finish_reason=finish_reason, usage=turn.usage, logprobs=logprobs)
        response = HttpResponse(body, content_type="application/json")
    response["X-Idempotent-Replay"] = "true"
    return _with_headers(response, admission, target, repeated)


def _shape(api: Api, admission: Admission) -> ReplyShape:
    return api.shape(
        turn_id=admission.outcome.turn_id,
        created=_created(admission.outcome.turn_id),
        ask=admission.ask,
        fingerprint=admission.target.served_name,
    )


def _created(turn_id: uuid.UUID) -> int:
    # the identifier holds its time: a repetition says the same as the first reply,
    # whatever second that fell into
    return int.from_bytes(turn_id.bytes[:6]) // 1000


def _logprobs(
    admission: Admission,
    ids: list[int],
    logprobs: list[float],
    top: Sequence[Sequence[tuple[int, float]]] = (),
) -> dict[str, object] | None:
    return logprobs_object(ids, logprobs, top) if admission.ask.logprobs and logprobs else None


def _with_headers(response: R, admission: Admission, target: Target, outcome: Admitted | Repeated) -> R:
    for name, value in admission.permit.headers.items():
        response[name] = value
    response["X-Adapter-Version"] = str(target.number)
    response["X-Adapter-Hash"] = target.sha256
    response["X-Served-Name"] = target.served_name
    response["X-Session-Id"] = outcome.session
    response["X-Turn-Id"] = str(outcome.turn_id)
    response["X-Request-Id"] = str(outcome.turn_id)
    return response
