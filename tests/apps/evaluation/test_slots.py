"""Places at the engine."""

import asyncio

import pytest

from apps.evaluation.demo.slots import Slots


async def test_no_more_holders_than_places_and_urgent_ones_first() -> None:
    slots = Slots(1)
    order: list[str] = []
    release = asyncio.Event()

    async def hold(name: str, urgency: int) -> None:
        async with slots.hold(urgency=urgency):
            order.append(name)
            await release.wait()

    async with asyncio.TaskGroup() as group:
        for name, urgency in (("first", 1), ("measure", 1), ("talk", 0), ("measure too", 1)):
            group.create_task(hold(name, urgency))
            await asyncio.sleep(0)
        assert order == ["first"]
        release.set()
    assert order == ["first", "talk", "measure", "measure too"]


async def test_a_place_survives_those_who_give_up() -> None:
    slots = Slots(1)
    async with slots.hold(urgency=0):
        waiting = asyncio.create_task(_take(slots))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await asyncio.wait_for(_take(slots), timeout=1)


async def _take(slots: Slots) -> None:
    async with slots.hold(urgency=0):
        pass
