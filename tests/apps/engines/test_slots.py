"""More policies than an engine batches adapters:
queued fairly, by several processes, with or without Redis."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import redis

from apps.engines.replies import EngineBusy, EngineSilent
from apps.engines.slots import AdapterSlots, shared
from apps.engines.slots.rules import Rules

ENGINE = "http://engine"
RULES = Rules(turn_s=0.1, tenant_handicap_s=0.1)


async def three(engine: str) -> int:
    del engine
    return 3


class Batch:
    """An engine that notes how many distinct adapters it was ever asked for at once."""

    def __init__(self) -> None:
        self.running: Counter[str | None] = Counter()
        self.most = 0
        self.done: list[str | None] = []

    async def work(self, adapter: str | None, seconds: float) -> None:
        self.running[adapter] += 1
        self.most = max(self.most, len(+self.running))
        await asyncio.sleep(seconds)
        self.running[adapter] -= 1
        self.done.append(adapter)


async def ask(
    slots: AdapterSlots,
    batch: Batch,
    adapter: str | None,
    *,
    seconds: float = 0.02,
    tenant: str | None = None,
) -> float:
    """Send one request; returns how long it waited."""
    began = time.monotonic()
    async with slots.seat(engine=ENGINE, adapter=adapter, tenant=tenant or f"of {adapter}"):
        waited = time.monotonic() - began
        await batch.work(adapter, seconds)
    return waited


@pytest.fixture
async def processes(valkey: redis.Redis) -> AsyncIterator[list[AdapterSlots]]:
    """What three gateway processes have."""
    url = url_of(valkey)
    made = [AdapterSlots(capacity=three, redis_url=url, rules=RULES, wait_s=20) for _ in range(3)]
    for one in made:
        await knowing(one)
    yield made
    for one in made:
        await one.close()


async def knowing(slots: AdapterSlots) -> None:
    """Return once the engine's capacity has been learned."""
    async with slots.seat(engine=ENGINE, adapter="first", tenant="first"):
        await asyncio.sleep(0)
    await asyncio.sleep(0)


def url_of(valkey: redis.Redis) -> str:
    from django.conf import settings

    assert valkey.ping()
    return str(settings.REDIS_URL)


@pytest.fixture
async def alone() -> AsyncIterator[AdapterSlots]:
    made = AdapterSlots(capacity=three, redis_url=None, rules=RULES, wait_s=20)
    await knowing(made)
    yield made
    await made.close()


async def test_no_more_adapters_are_in_flight_than_a_batch_takes(alone: AdapterSlots) -> None:
    batch = Batch()
    await asyncio.gather(*(ask(alone, batch, f"p{i % 9}") for i in range(90)))

    assert batch.most == 3
    assert Counter(batch.done) == {f"p{i}": 10 for i in range(9)}


async def test_several_processes_share_the_slots(processes: list[AdapterSlots]) -> None:
    batch = Batch()
    await asyncio.gather(*(ask(processes[i % 3], batch, f"p{i % 8}") for i in range(96)))

    assert batch.most == 3
    assert Counter(batch.done) == {f"p{i}": 12 for i in range(8)}


async def test_nobody_starves_beside_policies_that_never_pause(processes: list[AdapterSlots]) -> None:
    batch, stop = Batch(), asyncio.Event()

    async def busy(slots: AdapterSlots, adapter: str) -> None:
        while not stop.is_set():
            await asyncio.gather(*(ask(slots, batch, adapter, seconds=0.03) for _ in range(4)))

    async def overlapping() -> list[asyncio.Task[None]]:
        tasks = []
        for i in range(6):  # two loops for each of three adapters: no moment without a request of each
            tasks.append(asyncio.create_task(busy(processes[i % 3], f"busy{i % 3}")))
            await asyncio.sleep(0.01)
        return tasks

    tasks = await overlapping()
    waits = [await ask(processes[i % 3], batch, "rare") for i in range(5)]
    stop.set()
    await asyncio.gather(*tasks)

    assert max(waits) < 2.0
    assert batch.most == 3


async def test_a_tenant_with_many_policies_leaves_room_for_one_with_few(alone: AdapterSlots) -> None:
    batch = Batch()
    crowd = [ask(alone, batch, f"many{i}", tenant="many", seconds=0.1) for i in range(30)]
    tasks = [asyncio.create_task(one) for one in crowd]
    await asyncio.sleep(0.02)
    await ask(alone, batch, "one", tenant="one", seconds=0.01)
    ahead = len(batch.done)
    await asyncio.gather(*tasks)

    # first come, first served alone would have put all thirty in front
    assert ahead < 12
    assert batch.most == 3


async def test_the_base_takes_a_slot_only_while_it_is_used(alone: AdapterSlots) -> None:
    batch = Batch()
    await asyncio.gather(*(ask(alone, batch, name) for name in ("a", "b", "c", None, None, "d")))
    assert batch.most == 3
    assert Counter(batch.done) == {"a": 1, "b": 1, "c": 1, "d": 1, None: 2}


async def test_with_room_for_all_nobody_asks_redis_for_a_second_turn(
    processes: list[AdapterSlots], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = Batch()
    await ask(processes[0], batch, "a")
    joined = processes[0].counters.joined.labels(ENGINE)._value
    before = joined.get()
    for _ in range(5):
        assert await ask(processes[0], batch, "a", seconds=0.0) < 0.005
    assert joined.get() - before == 5


async def test_who_gives_up_waiting_leaves_no_trace(
    processes: list[AdapterSlots], valkey: redis.Redis
) -> None:
    batch = Batch()
    holding = [asyncio.create_task(ask(processes[0], batch, f"p{i}", seconds=0.3)) for i in range(3)]
    await asyncio.sleep(0.05)
    waiting = asyncio.create_task(ask(processes[1], batch, "late"))
    await asyncio.sleep(0.1)
    assert shared.in_use(valkey, engine=ENGINE, now=time.time()) == {"p0", "p1", "p2", "late"}
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await asyncio.sleep(0.1)

    assert shared.in_use(valkey, engine=ENGINE, now=time.time()) == {"p0", "p1", "p2"}
    await asyncio.gather(*holding)
    assert "late" not in batch.done
    assert await ask(processes[2], batch, "next") < 0.5


async def test_a_process_that_died_gives_its_slots_back(
    processes: list[AdapterSlots], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "ALIVE_S", 0.5)
    batch = Batch()
    dying = [asyncio.create_task(ask(processes[0], batch, f"p{i}", seconds=30)) for i in range(3)]
    await asyncio.sleep(0.1)
    lane = processes[0]._lane(ENGINE)
    assert lane._task is not None
    lane._task.cancel()  # it tells nobody any more

    waited = await ask(processes[1], batch, "next")

    assert 0.2 < waited < 2.0
    for one in dying:
        one.cancel()
    await asyncio.gather(*dying, return_exceptions=True)


async def test_without_redis_each_process_keeps_to_its_share(processes: list[AdapterSlots]) -> None:
    batch = Batch()
    await asyncio.gather(*(ask(one, batch, "a", seconds=0.3) for one in processes))
    for one in processes:
        assert one._redis is not None
        await one._redis.aclose()
        one._redis.connection_pool.connection_kwargs["port"] = 1  # nobody listens there
        one._redis.connection_pool.reset()

    # known before: two others, so each has one of the three
    await asyncio.gather(*(ask(processes[i % 3], batch, f"p{i % 9}") for i in range(45)))

    assert batch.most <= 3
    assert len(batch.done) == 48
    assert processes[0].counters.alone.labels(ENGINE)._value.get() > 0


async def test_a_turn_that_does_not_come_in_time_is_refused_with_when_to_come_back() -> None:
    slots, batch = AdapterSlots(capacity=three, redis_url=None, rules=RULES, wait_s=0.1), Batch()
    await knowing(slots)
    holding = [asyncio.create_task(ask(slots, batch, f"p{i}", seconds=0.4)) for i in range(3)]
    await asyncio.sleep(0)

    with pytest.raises(EngineBusy) as refused:
        await ask(slots, batch, "late")

    assert (refused.value.status, refused.value.retry_after_s) == (429, 2.0)
    await asyncio.gather(*holding)
    await ask(slots, batch, "late")
    await slots.close()


async def test_an_engine_that_does_not_say_its_capacity_is_not_limited() -> None:
    asked = 0

    async def silent(engine: str) -> int:
        nonlocal asked
        asked += 1
        raise EngineSilent(engine)

    slots, batch = AdapterSlots(capacity=silent, redis_url=None), Batch()
    assert max(await asyncio.gather(*(ask(slots, batch, f"p{i}") for i in range(8)))) < 0.1
    assert (batch.most, asked, slots.running(ENGINE)) == (8, 1, 0)
    await slots.close()


async def test_a_process_that_starts_under_load_keeps_to_the_slots_from_its_first_request_on() -> None:
    async def asked_over_the_network(engine: str) -> int:
        await asyncio.sleep(0.05)
        return await three(engine)

    slots, batch = AdapterSlots(capacity=asked_over_the_network, redis_url=None, rules=RULES), Batch()
    await asyncio.gather(*(ask(slots, batch, f"p{i}") for i in range(8)))
    assert (batch.most, len(batch.done)) == (3, 8)
    await slots.close()


async def test_the_counters_name_engines_and_nobody_else(alone: AdapterSlots) -> None:
    await asyncio.gather(*(ask(alone, Batch(), f"secret{i}", tenant="secret") for i in range(5)))

    text = alone.counters.text().decode()
    assert f'attune_engine_requests_total{{engine="{ENGINE}",kind="adapter"}} 6.0' in text
    assert f'attune_adapter_slot_wait_seconds_count{{engine="{ENGINE}"}} 6.0' in text
    assert "secret" not in text
