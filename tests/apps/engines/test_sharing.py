"""Replies that pause for others: the same tokens,
log-probabilities and text as if they had been written at one go."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from apps.engines.client import EngineClient
from apps.engines.replies import Chunk, EngineBroken, EngineBusy
from apps.engines.slots import AdapterSlots
from apps.engines.slots.rules import Rules
from apps.engines.slots.seats import Seat
from apps.engines.slots.sharing import resumable, shared_reply
from tests.fake_engine import FakeEngine
from tests.fake_generation import END_OF_TURN, Request, Token

PROMPT = [1, 2, 3]
WORDS = ("One", " short", " sen", "tence", ".", " And", " an", "other", " one", ".")
SAMPLING = {"temperature": 0.0, "max_new_tokens": 64}


def going_on(words: Sequence[str]) -> Callable[[Request], tuple[Token, ...]]:
    """Return what goes on where the prompt ends, as a model does."""
    tokens = (
        *(Token(10 + i, word, -0.01 * (i + 1)) for i, word in enumerate(words)),
        Token(END_OF_TURN, "", -1.0),
    )
    return lambda request: tokens[len(request.input_ids) - len(PROMPT) :]


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with FakeEngine() as running:
        running.reply = going_on(WORDS)
        running.delay_s = 0.01
        yield running


@pytest.fixture
async def client(engine: FakeEngine) -> AsyncIterator[EngineClient]:
    async with EngineClient(engine.url, vocab_size=64) as made:
        yield made


class Pressed(Seat):
    """A seat that is asked back all the time, or at the tokens that a test names."""

    def __init__(self, *, least: int = 1, contended: bool = True) -> None:
        super().__init__(None, "", self._enter_again, least)
        self.pauses = 0
        self.pinned = False
        self._contended = contended

    @property
    def contended(self) -> bool:
        return self._contended

    @property
    def asked_back(self) -> bool:
        return not self.pinned

    def pin(self) -> None:
        self.pinned = True

    async def _enter_again(self) -> None:
        self.pauses += 1


def characters(ids: Sequence[int]) -> str:
    return "".join(WORDS[token - 10] for token in ids if token - 10 in range(len(WORDS)))


async def all_of(
    client: EngineClient, seat: Seat, sampling: Mapping[str, Any] = SAMPLING, **more: Any
) -> list[Chunk]:
    asked = {"input_ids": PROMPT, "sampling": sampling, "adapter": None, "decode": characters} | more
    return [chunk async for chunk in shared_reply(client, seat, **asked)]


def joined(chunks: Sequence[Chunk]) -> tuple[str, list[int], list[float], str | None]:
    return (
        "".join(chunk.text for chunk in chunks),
        [token for chunk in chunks for token in chunk.output_ids],
        [value for chunk in chunks for value in chunk.output_logprobs],
        chunks[-1].finish_reason,
    )


@pytest.mark.parametrize("least", [1, 3, 4])
async def test_a_paused_reply_is_the_same_reply(client: EngineClient, engine: FakeEngine, least: int) -> None:
    at_one_go = [chunk async for chunk in client.generate(input_ids=PROMPT, sampling=SAMPLING)]
    engine.requests.clear()
    seat = Pressed(least=least)

    chunks = await all_of(client, seat)

    assert joined(chunks) == joined(at_one_go)
    assert joined(chunks)[0] == "".join(WORDS)
    assert seat.pauses == len(engine.requests) - 1 == 10 // least
    # each slice goes on exactly where the one before was left, with what is left of the limit
    ids = joined(chunks)[1]
    for number, request in enumerate(engine.requests):
        assert request.input_ids == PROMPT + ids[: number * least]
        assert request.sampling["max_new_tokens"] == 64 - number * least
    assert chunks[-1].usage.completion_tokens == len(ids) == 11
    assert {chunk.usage.prompt_tokens for chunk in chunks} == {at_one_go[0].usage.prompt_tokens}


async def test_what_was_left_is_aborted_in_the_engine(client: EngineClient, engine: FakeEngine) -> None:
    await all_of(client, Pressed(least=4))
    await client.close()
    assert [request.aborted is not None for request in engine.requests] == [True, True, False]


@pytest.mark.parametrize("limit", [1, 4, 5, 8])
async def test_the_length_limit_counts_over_all_slices(
    client: EngineClient, engine: FakeEngine, limit: int
) -> None:
    chunks = await all_of(client, Pressed(least=2), {**SAMPLING, "max_new_tokens": limit})
    assert (len(joined(chunks)[1]), joined(chunks)[3]) == (limit, "length")


@pytest.mark.parametrize("stop", ["sentence", "t sen", ". And", "tence. And an"])
async def test_a_stop_string_is_seen_wherever_it_lies(
    client: EngineClient, engine: FakeEngine, stop: str
) -> None:
    chunks = await all_of(client, Pressed(), {**SAMPLING, "stop": [stop]})

    text = "".join(WORDS)
    assert joined(chunks)[0] == text[: text.index(stop)]
    assert (chunks[-1].finish_reason, chunks[-1].stopped_by) == ("stop", stop)


async def test_no_pause_within_a_character(client: EngineClient, engine: FakeEngine) -> None:
    def half(ids: Sequence[int]) -> str:
        return "x\ufffd" if ids[-1] in (11, 12) else "x"

    await all_of(client, Pressed(), decode=half)
    assert [len(request.input_ids) - len(PROMPT) for request in engine.requests][:3] == [0, 1, 4]


@pytest.mark.parametrize(
    "more",
    [
        {"presence_penalty": 0.1},
        {"frequency_penalty": -0.1},
        {"json_schema": "{}"},
        {"structural_tag": "{}"},
        {"min_new_tokens": 3},
        {"repetition_penalty": 1.1},
    ],
)
async def test_what_has_a_memory_is_not_paused(
    client: EngineClient, engine: FakeEngine, more: dict[str, Any]
) -> None:
    seat = Pressed()
    chunks = await all_of(client, seat, {**SAMPLING, **more})
    assert (joined(chunks)[0], seat.pinned, seat.pauses, len(engine.requests)) == ("".join(WORDS), True, 0, 1)


def test_neutral_values_have_no_memory() -> None:
    assert resumable({"presence_penalty": 0.0, "repetition_penalty": 1.0, "json_schema": None, "stop": ["x"]})


async def test_a_whole_reply_is_paused_only_where_somebody_waited_already(
    client: EngineClient, engine: FakeEngine
) -> None:
    quiet, pressed = Pressed(contended=False), Pressed(least=4)
    one = await all_of(client, quiet, stream=False)
    assert (len(one), quiet.pauses, quiet.pinned, len(engine.requests)) == (1, 0, True, 1)
    assert joined(await all_of(client, pressed, stream=False)) == joined(one)
    assert pressed.pauses == 2


async def test_an_engine_that_dies_between_slices_ends_the_reply_as_broken(
    client: EngineClient, engine: FakeEngine
) -> None:
    seat = Pressed(least=4)
    written: list[int] = []
    source = shared_reply(client, seat, input_ids=PROMPT, sampling=SAMPLING, adapter=None, decode=characters)
    while len(written) < 4:
        written += (await anext(source)).output_ids
    engine.refuse_next(503)
    with pytest.raises(EngineBroken):
        await anext(source)
    assert len(written) == 4


def slots_of(count: int, **rules: Any) -> AdapterSlots:
    async def capacity(engine: str) -> int:
        del engine
        return count

    return AdapterSlots(capacity=capacity, redis_url=None, rules=Rules(**rules), wait_s=20)


async def test_a_policy_that_waits_gets_its_first_token_before_the_replies_in_front_have_ended(
    client: EngineClient, engine: FakeEngine
) -> None:
    engine.reply = going_on(["word"] * 50)
    engine.adapters |= {name: f"/{name}" for name in "abc"}
    slots = slots_of(2, turn_s=0.02, slice_tokens=2)
    events: list[str] = []

    async def ask(name: str) -> list[Chunk]:
        async with slots.seat(engine=client.url, adapter=name, tenant=name) as seat:
            source = shared_reply(
                client, seat, input_ids=PROMPT, sampling=SAMPLING, adapter=name, decode=lambda _: ""
            )
            chunks: list[Chunk] = []
            async with aclosing(source):
                async for chunk in source:
                    events.append(name)
                    chunks.append(chunk)
            return chunks

    async with slots.seat(engine=client.url, adapter="a", tenant="a"):
        await asyncio.sleep(0.01)  # its capacity is known now
    first = [asyncio.create_task(ask(name)) for name in "ab"]
    while len(events) < 6:
        await asyncio.sleep(0.005)
    late = await ask("c")
    replies = [late, *[await task for task in first]]

    assert [len(joined(reply)[1]) for reply in replies] == [51, 51, 51]
    begun = events.index("c")
    assert begun < 40  # both replies would have been over after 102
    assert {"a", "b", "c"} == set(events[begun + 1 :])
    assert len(engine.requests) > 3
    assert slots.running(client.url) == 0
    assert slots.held(client.url) <= {"a", "b", "c"}
    await slots.close()


async def test_who_cannot_pause_keeps_the_slot_and_who_finds_none_is_told_so(
    client: EngineClient, engine: FakeEngine
) -> None:
    engine.reply = going_on(["word"] * 30)
    engine.adapters |= {"a": "/a", "b": "/b"}
    slots = slots_of(1, turn_s=0.0, slice_tokens=1)
    slots._wait_s = 0.1
    async with slots.seat(engine=client.url, adapter="a", tenant="a"):
        await asyncio.sleep(0.01)
    async with slots.seat(engine=client.url, adapter="a", tenant="a") as seat:
        source = shared_reply(
            client,
            seat,
            input_ids=PROMPT,
            sampling={**SAMPLING, "presence_penalty": 1.0},
            adapter="a",
            decode=lambda _: "",
        )
        async with aclosing(source):
            async for _ in source:
                break
            with pytest.raises(EngineBusy):
                async with slots.seat(engine=client.url, adapter="b", tenant=str(uuid.uuid4())):
                    pass
            assert not seat.asked_back
            rest = [chunk async for chunk in source]
    assert rest[-1].finish_reason == "stop"
    assert len(engine.requests) == 1
    await slots.close()
