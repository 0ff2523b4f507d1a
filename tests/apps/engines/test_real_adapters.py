"""Adapters beside one another on a real engine:
each answers for itself, in any number and after any reload."""

import asyncio
import os
import uuid
from pathlib import Path

import pytest

from apps.engines.client import EngineClient
from apps.engines.slots import AdapterSlots
from embedded import processes
from embedded.engine import Engine
from tests.apps.adapters.files import Arrays, write_adapter
from tests.apps.engines.real_engine import PROMPTS, client_of, smaller

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("engine")]


def opposite(arrays: Arrays) -> None:
    for name in arrays:
        if "lora_B" in name:
            arrays[name] = -arrays[name]


async def greedy(client: EngineClient, ids: list[int], adapter: str, tokens: int = 6) -> list[int]:
    sampling = {"max_new_tokens": tokens, "temperature": 0.0, "ignore_eos": True}
    chunks = client.generate(input_ids=ids, sampling=sampling, adapter=adapter)
    return [token async for chunk in chunks for token in chunk.output_ids]


async def load_pair(client: EngineClient, model: Path, folder: Path) -> tuple[str, str]:
    """Load an adapter and the one of opposite sign."""
    mark = uuid.uuid4().hex[:8]
    names = f"p{mark}-v1-plus", f"p{mark}-v1-minus"
    for name, change in zip(names, (None, opposite), strict=True):
        write_adapter(folder / name, model, seed=5, change=change)
        await client.load(name, str(folder / name))
    return names


async def test_scale_survives_an_eviction_and_a_reload(engine: Engine, model: Path, tmp_path: Path) -> None:
    async with client_of(engine) as client:
        name, other = await load_pair(client, model, tmp_path)
        before = await client.score(PROMPTS[0], name)
        assert before != pytest.approx(await client.score(PROMPTS[0], other), abs=0.05)

        for number in range(5):  # more than a batch has places for: out of the engine's buffers
            write_adapter(tmp_path / f"more-{number}", model, seed=10 + number)
            await client.load(f"{name}{number}", str(tmp_path / f"more-{number}"))
            await client.score(PROMPTS[0], f"{name}{number}")
        assert await client.score(PROMPTS[0], name) == pytest.approx(before, abs=1e-5)

        await client.unload(name)
        await client.load(name, str(tmp_path / name))
        assert await client.score(PROMPTS[0], name) == pytest.approx(before, abs=1e-5)
        for loaded in await client.loaded():
            await client.unload(loaded)


async def test_more_adapters_at_once_than_a_batch_takes_are_all_answered_by_their_own(
    engine: Engine, model: Path, tmp_path: Path
) -> None:
    async with client_of(engine) as client:
        names = [f"p{uuid.uuid4().hex[:8]}-v1-aa" for _ in range(8)]
        for number, name in enumerate(names):
            write_adapter(tmp_path / name, model, seed=30 + number)
            await client.load(name, str(tmp_path / name))
        alone = {name: await greedy(client, PROMPTS[0], name) for name in names}
        assert len({tuple(ids) for ids in alone.values()}) > 4

        slots = AdapterSlots(capacity=capacity, redis_url=None)

        async def ask(name: str) -> tuple[str, list[int]]:
            async with slots.seat(engine=engine.url, adapter=name, tenant=name):
                return name, await greedy(client, PROMPTS[0], name)

        answers = await asyncio.gather(*(ask(names[i % 8]) for i in range(48)))
        assert [name for name, ids in answers if ids != alone[name]] == []
        await slots.close()
        for name in names:
            await client.unload(name)


async def capacity(engine: str) -> int:
    del engine
    return 4


@pytest.mark.long
async def test_a_thousand_mixed_requests_each_answered_by_their_own_adapter(
    engine: Engine, model: Path, tmp_path: Path
) -> None:
    async with client_of(engine) as client:
        names = await load_pair(client, model, tmp_path)
        prompts = [[1, *range(60 + number, 80 + number)] for number in range(10)]
        own = {
            (name, number): await greedy(client, ids, name)
            for name in names
            for number, ids in enumerate(prompts)
        }
        differing = [n for n in range(10) if own[names[0], n] != own[names[1], n]]
        assert len(differing) >= 8

        wrong: list[tuple[str, int]] = []
        work = iter([(names[i % 2], differing[i // 2 % len(differing)]) for i in range(1000)])

        async def lane() -> None:
            for name, number in work:
                if await greedy(client, prompts[number], name) != own[name, number]:
                    wrong.append((name, number))

        await asyncio.gather(*(lane() for _ in range(8)))
        assert wrong == []
        for name in names:
            await client.unload(name)


@pytest.mark.long
async def test_five_hundred_load_cycles_leave_the_memory_flat(
    engine: Engine, model: Path, tmp_path: Path
) -> None:
    write_adapter(tmp_path / "one", model, seed=1, change=smaller)
    resident: dict[int, int] = {}
    async with client_of(engine) as client:
        for cycle in range(501):
            name = f"p{cycle:08x}-v1-aa"
            await client.load(name, str(tmp_path / "one"))
            await client.score(PROMPTS[0], name)
            await client.unload(name)
            if cycle in {100, 300, 500}:
                resident[cycle] = memory_of(engine)
        assert str(tmp_path / "one") not in (await client.loaded()).values()

    # a cycle that kept its adapter would add more than this, and twice as much in twice the cycles
    size = sum(file.stat().st_size for file in (tmp_path / "one").iterdir())
    assert resident[500] - resident[100] < 400 * size / 4


def memory_of(engine: Engine) -> int:
    """Return the resident bytes of a server and its children."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes()
            if f"{engine.port}.yaml".encode() in command:
                pids = [int(directory.name), *processes.descendants(int(directory.name))]
                return sum(_resident(pid) for pid in pids)
        except OSError:
            continue
    raise AssertionError("the server is not there")


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
