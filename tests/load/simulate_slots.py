"""What sharing slots by time does, without a machine's noise: the platform's own code on an engine of four numbers.

`python -m tests.load.simulate_slots`. The event loop's clock jumps to the next timer, so the figures are the
same everywhere. The engine prefills before it decodes, batches at most so many requests and distinct
adapters, and takes times fitted to the embedded model on one core (seconds): a step of n requests of k
adapters 0.05 + 0.02 n + 0.02 k, a prefill of t new tokens 0.1 + 0.002 t + 0.02 k. It says which order of
waiting is better, not what a machine will measure: that is `tests.load.slots`.
"""

import argparse
import asyncio
import json
import os
import random
import selectors
import statistics
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any, cast

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
django.setup()

from apps.engines.client import EngineClient  # noqa: E402 - settings come first
from apps.engines.replies import Chunk  # noqa: E402
from apps.engines.slots import AdapterSlots  # noqa: E402
from apps.engines.slots.rules import Rules  # noqa: E402
from apps.engines.slots.sharing import shared_reply  # noqa: E402
from tests.load import _engine  # noqa: E402
from tests.load._requests import p99  # noqa: E402

PROMPT = 48


class _Jump(selectors.DefaultSelector):
    """Waits for nothing: the time that would be waited has passed."""

    passed = 1000.0

    def select(self, timeout: float | None = None) -> list[Any]:
        """Return what is ready now, or let the time pass."""
        ready = super().select(0)
        if not ready and timeout:
            self.passed += timeout
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        """Return the jumping clock's time."""
        return self._jump.passed


@dataclass(eq=False, slots=True)
class _Request:
    adapter: str | None
    new: int
    left: int
    tokens: "asyncio.Queue[bool]" = field(default_factory=asyncio.Queue)
    gone: bool = False


class SimulatedEngine:
    """Answers `generate` as an engine does, in the loop's time."""

    url = "simulated"

    def __init__(self, *, running: int, slots: int) -> None:
        self._most, self._slots = running, slots
        self._waiting: list[_Request] = []
        self._running: list[_Request] = []
        self._work = asyncio.Event()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._running = [one for one in self._running if not one.gone]
            self._waiting = [one for one in self._waiting if not one.gone]
            adapters = {one.adapter for one in self._running}
            entering: list[_Request] = []
            for one in self._waiting:
                if len(self._running) + len(entering) < self._most and (
                    one.adapter in adapters or len(adapters) < self._slots
                ):
                    adapters.add(one.adapter)
                    entering.append(one)
            if entering:
                self._waiting = [one for one in self._waiting if one not in entering]
                distinct = len({one.adapter for one in entering})
                await asyncio.sleep(0.1 + 0.002 * sum(one.new for one in entering) + 0.02 * distinct)
                self._running += entering
            elif self._running:
                entering = list(self._running)
                await asyncio.sleep(0.05 + 0.02 * len(entering) + 0.02 * len(adapters))
            else:
                self._work.clear()
                await self._work.wait()
            for one in entering:
                one.left -= 1
                one.gone = one.gone or one.left == 0
                one.tokens.put_nowait(one.left == 0)

    async def generate(
        self, *, input_ids: Sequence[int], sampling: Mapping[str, Any], adapter: str | None, **_: Any
    ) -> AsyncGenerator[Chunk, None]:
        """Yield as many tokens as are asked for; what was seen before is in the prefix cache."""
        new = len(input_ids) if len(input_ids) <= PROMPT else 1
        request = _Request(adapter, new, sampling["max_new_tokens"])
        self._waiting.append(request)
        self._work.set()
        try:
            while not request.gone or not request.tokens.empty():
                last = await request.tokens.get()
                yield Chunk("x", [1], [0.0], finish_reason="length" if last else None)
        finally:
            request.gone = True


async def measure(
    options: argparse.Namespace, seed: int, policies: int, rules: Rules | None
) -> dict[str, float]:
    """Send the requests through the slots, or (None) straight to the engine."""
    loop, chance = asyncio.get_running_loop(), random.Random(seed)
    engine = SimulatedEngine(running=options.running, slots=options.slots)
    work = loop.create_task(engine.run())

    async def capacity(_: str) -> int:
        return int(options.slots)

    slots = AdapterSlots(capacity=capacity, redis_url=None, rules=rules, wait_s=3600.0, clock=loop.time)
    async with slots.seat(engine=engine.url, adapter="p0", tenant="p0"):
        await asyncio.sleep(0.001)  # its capacity is known now
    order = [f"p{number % policies}" for number in range(options.requests)]
    chance.shuffle(order)
    first: dict[str, list[float]] = defaultdict(list)
    whole: list[float] = []
    waiting = iter(order)

    async def lane() -> None:
        for policy in waiting:
            began, seen = loop.time(), 0.0
            asked: dict[str, Any] = {
                "input_ids": [1] * PROMPT,
                "sampling": {"max_new_tokens": options.reply},
                "adapter": policy,
            }
            async with AsyncExitStack() as stack:
                source = engine.generate(**asked)
                if rules is not None:
                    seat = await stack.enter_async_context(
                        slots.seat(engine=engine.url, adapter=policy, tenant=policy)
                    )
                    asked["decode"] = lambda _: ""
                    source = shared_reply(cast(EngineClient, engine), seat, **asked)
                async with aclosing(source):
                    async for _ in source:
                        seen = seen or loop.time()
            first[policy].append(seen - began)
            whole.append(loop.time() - began)

    began = loop.time()
    await asyncio.gather(*(lane() for _ in range(options.parallel)))
    took = loop.time() - began
    work.cancel()
    await slots.close()
    return {
        "worst_policy_p99_s": max(p99(values) for values in first.values()),
        "median_s": statistics.median(value for values in first.values() for value in values),
        "whole_median_s": statistics.median(whole),
        "tokens_per_s": options.requests * options.reply / took,
    }


def compare(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Return the medians of the rounds of each way, with the ratio to `within`."""
    live = 3 * options.slots
    ways: dict[str, tuple[int, Rules | None]] = {
        "within": (options.slots, None),
        "bare": (live, None),
        "queued": (live, Rules(slice_tokens=1_000_000)),
        **{f"fair, {count} tokens": (live, Rules(slice_tokens=count)) for count in options.slices},
    }
    rounds: dict[str, list[dict[str, float]]] = defaultdict(list)
    for seed in range(options.rounds):
        for way, (policies, rules) in ways.items():
            loop = JumpingLoop()
            rounds[way].append(loop.run_until_complete(measure(options, seed, policies, rules)))
            loop.close()
    worst = "worst_policy_p99_s"
    return {
        way: {
            "ratio": statistics.median(
                one[worst] / base[worst] for one, base in zip(found, rounds["within"], strict=True)
            ),
            **{name: statistics.median(one[name] for one in found) for name in found[0]},
        }
        for way, found in rounds.items()
    }


def main() -> None:
    """Read the options, run, print a table and write `var/bench/simulate_slots.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=192)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--running", type=int, default=8, help="requests in one batch at most")
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--reply", type=int, default=24, help="tokens")
    parser.add_argument("--slices", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="tokens")
    options = parser.parse_args()
    found = compare(options)
    for way, figures in found.items():
        print(f"{way:<16}" + "".join(f"  {name} {value:7.2f}" for name, value in figures.items()))
    result = {"ways": found, "sizes": vars(options)}
    (_engine.bench_directory() / "simulate_slots.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
