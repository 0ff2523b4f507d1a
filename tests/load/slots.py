"""Time to first token of the worst policy, with three times as many live adapters as a batch takes.

One real engine on the CPU and the slots that `make up` gives it, twice as many requests in parallel as slots,
over all policies alike. Each round runs four ways one after the other: as many adapters as slots (`within`),
three times as many straight at the engine (`bare`), the same through the platform's slots without pausing
anybody's reply (`queued`), and as the platform does it (`fair`). The 99th percentile is of one policy's
requests, and the policy is the one where it is worst. `ratio` is fair over within, the median of the rounds.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import tempfile
import time
from collections import defaultdict
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from pathlib import Path

import django
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
django.setup()

from apps.engines.client import EngineClient  # noqa: E402 - settings come first
from apps.engines.slots import AdapterSlots  # noqa: E402
from apps.engines.slots.rules import Rules  # noqa: E402
from apps.engines.slots.sharing import shared_reply  # noqa: E402
from embedded.engine import BATCH_SLOTS  # noqa: E402
from tests.load import _engine  # noqa: E402
from tests.load._requests import p99  # noqa: E402


@dataclass
class Arm:
    """What one way of serving measured, seconds."""

    first_token: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    wall_s: float = 0.0
    tokens: int = 0

    def summary(self) -> dict[str, float]:
        """Return the figures that are compared."""
        everything = [value for values in self.first_token.values() for value in values]
        return {
            "median_s": statistics.median(everything),
            "worst_policy_p99_s": max(p99(values) for values in self.first_token.values()),
            "best_policy_p99_s": min(p99(values) for values in self.first_token.values()),
            "tokens_per_s": self.tokens / self.wall_s,
        }


async def measure(
    client: EngineClient,
    slots: AdapterSlots | None,
    policies: list[str],
    options: argparse.Namespace,
    seed: int,
) -> Arm:
    """Send `requests` requests, `parallel` at a time, over the policies alike and in a random order."""
    chance = random.Random(seed)
    order = [policies[i % len(policies)] for i in range(options.requests)]
    chance.shuffle(order)
    sampling = {"max_new_tokens": options.reply, "temperature": 0.7, "ignore_eos": True}
    arm, waiting = Arm(), iter(order)

    async def ask(policy: str) -> None:
        ids = _engine.some_ids(chance, options.served, options.prompt)
        asked, first = time.monotonic(), None
        async with AsyncExitStack() as stack:
            if slots is None:
                source = client.generate(input_ids=ids, sampling=sampling, adapter=policy)
            else:
                seat = await stack.enter_async_context(
                    slots.seat(engine=client.url, adapter=policy, tenant=policy)
                )
                source = shared_reply(client, seat, input_ids=ids, sampling=sampling, adapter=policy)
            async with aclosing(source):
                async for chunk in source:
                    first = first or time.monotonic()
                    arm.tokens += len(chunk.output_ids)
        assert first is not None
        arm.first_token[policy].append(first - asked)

    async def worker() -> None:
        for policy in waiting:
            await ask(policy)

    began = time.monotonic()
    await asyncio.gather(*(worker() for _ in range(options.parallel)))
    arm.wall_s = time.monotonic() - began
    return arm


async def compare(client: EngineClient, names: list[str], options: argparse.Namespace) -> dict[str, object]:
    """Run the rounds and return the result."""

    async def capacity(engine: str) -> int:
        del engine
        return int(options.slots)

    def slots(slice_tokens: int) -> AdapterSlots:
        rules = Rules(turn_s=options.turn_s, slice_tokens=slice_tokens)
        return AdapterSlots(capacity=capacity, redis_url=options.redis or None, rules=rules)

    fair, queued = slots(options.slice_tokens), slots(1_000_000)
    rounds: list[dict[str, dict[str, float]]] = []
    pooled: dict[str, Arm] = defaultdict(Arm)
    for number in range(options.rounds):
        ways = {
            "within": (None, names[: options.slots]),
            "bare": (None, names),
            "queued": (queued, names),
            "fair": (fair, names),
        }
        results = {}
        for way in options.ways:
            limit, policies = ways[way]
            arm = await measure(client, limit, policies, options, seed=number)
            results[way] = arm.summary()
            for policy, values in arm.first_token.items():
                pooled[way].first_token[policy] += values
            pooled[way].wall_s += arm.wall_s
            pooled[way].tokens += arm.tokens
            print(number, way, {key: round(value, 2) for key, value in results[way].items()}, flush=True)
        rounds.append(results)
    await fair.close()
    await queued.close()

    def ratio(way: str) -> float | None:
        worst = "worst_policy_p99_s"
        if way not in options.ways or "within" not in options.ways:
            return None
        return statistics.median(one[way][worst] / one["within"][worst] for one in rounds)

    return {
        "ratio": ratio("fair"),
        "ratio_bare": ratio("bare"),
        "ratio_queued": ratio("queued"),
        "pooled": {way: arm.summary() for way, arm in pooled.items()},
        "rounds": rounds,
        "target": 2.0,
        "live_adapters": len(names),
        **{
            name: getattr(options, name)
            for name in (
                "model",
                "rounds",
                "slots",
                "parallel",
                "requests",
                "prompt",
                "reply",
                "turn_s",
                "slice_tokens",
            )
        },
    }


async def prepare(client: EngineClient, folder: Path, served: Path, live: int) -> list[str]:
    """Load so many adapters and use each once."""
    names: list[str] = []
    for number in range(live):
        directory = _engine.write_adapter(folder / f"adapter-{number}", served, seed=number)
        names.append(f"p{number:08x}-v1-00000000")
        await client.load(names[-1], str(directory))
        await client.score([1, 2, 3], names[-1], timeout_s=60.0)
    return names


async def run(options: argparse.Namespace) -> None:
    """Measure and write the result."""
    with tempfile.TemporaryDirectory(prefix="bench-slots-") as name:
        folder = Path(name)
        served = options.served = _engine.model_directory(options.model, folder)
        settings.MODEL_PATH = served
        live = 3 * options.slots
        with _engine.engine(served, folder, slots=options.slots, loaded_slots=live + 2) as server:
            async with _engine.client(server) as client:
                result = await compare(client, await prepare(client, folder, served, live), options)
    target = _engine.bench_directory() / options.output
    target.write_text(json.dumps(result, indent=2) + "\n")
    print(f"worst policy's p99 over that within slots: {result['ratio']}, bare {result['ratio_bare']}")


def main() -> None:
    """Read the options and run."""
    parser, rules = argparse.ArgumentParser(description=__doc__), Rules()
    parser.add_argument("--model", choices=_engine.MODELS, default="embedded")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=96, help="in each arm of a round")
    parser.add_argument("--slots", type=int, default=BATCH_SLOTS[0], help="adapters in one batch")
    parser.add_argument("--parallel", type=int, help="requests at a time; twice the slots without it")
    parser.add_argument("--prompt", type=int, default=48, help="tokens")
    parser.add_argument("--reply", type=int, default=24, help="tokens")
    parser.add_argument(
        "--turn-s", type=float, default=rules.turn_s, help="see apps.engines.slots.rules.Rules"
    )
    parser.add_argument("--slice-tokens", type=int, default=rules.slice_tokens, help="as there")
    parser.add_argument("--redis", default="", help="URL; without it the slots are this process's alone")
    parser.add_argument("--output", default="slots.json", help="the file's name in var/bench")
    parser.add_argument("--ways", nargs="+", default=["within", "bare", "queued", "fair"])
    options = parser.parse_args()
    options.parallel = options.parallel or 2 * options.slots
    asyncio.run(run(options))


if __name__ == "__main__":
    main()
