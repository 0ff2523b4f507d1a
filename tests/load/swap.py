"""Time to first token while an adapter is swapped every second, against quiet.

One real engine on the CPU, a few requests at a time of one policy. Quiet stretches alternate
with stretches in which every second another version is loaded, proven by a short scoring as publishing does,
and made the one that new requests name. `ratio` is the 99th percentile with swaps over the one without, the
median of the rounds; old versions are unloaded between the stretches, as the platform does it, late.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import tempfile
import time
from contextlib import aclosing, suppress
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
django.setup()

from apps.engines.client import EngineClient  # noqa: E402 - settings come first
from tests.load import _engine  # noqa: E402
from tests.load._requests import p99  # noqa: E402

EVERY_S = 1.0
VERSIONS = 16


class Policy:
    """One policy on one engine, and the version that new requests name."""

    def __init__(self, client: EngineClient, directories: list[Path]) -> None:
        self._client = client
        self._directories = directories
        self._number = 0
        self.live = ""
        self.loads: list[float] = []

    async def swap(self) -> None:
        """Load the next version, prove it, and let new requests name it."""
        self._number += 1
        name = f"p00000001-v{self._number}-00000000"
        began = time.monotonic()
        await self._client.load(name, str(self._directories[self._number % len(self._directories)]))
        self.loads.append(time.monotonic() - began)
        await self._client.score(list(range(100, 124)), name, timeout_s=60.0)
        self.live = name

    async def every_second(self) -> None:
        """Swap until cancelled."""
        while True:
            began = time.monotonic()
            await self.swap()
            await asyncio.sleep(max(0.0, EVERY_S - (time.monotonic() - began)))

    async def unload_old(self) -> None:
        """Let the engine forget all versions but the live one."""
        for name in await self._client.loaded():
            if name != self.live:
                await self._client.unload(name)


async def stretch(
    client: EngineClient, policy: Policy, options: argparse.Namespace, seed: int
) -> tuple[list[float], list[float]]:
    """Keep some requests going for some seconds;
    returns times to first token and gaps between tokens, seconds."""
    chance = random.Random(seed)
    sampling = {"max_new_tokens": options.reply, "temperature": 0.7, "ignore_eos": True}
    firsts: list[float] = []
    gaps: list[float] = []
    end = time.monotonic() + options.seconds

    async def lane() -> None:
        while time.monotonic() < end:
            ids = _engine.some_ids(chance, options.served, options.prompt)
            before = asked = time.monotonic()
            chunks = client.generate(input_ids=ids, sampling=sampling, adapter=policy.live)
            async with aclosing(chunks):
                async for _ in chunks:
                    now = time.monotonic()
                    (firsts if before == asked else gaps).append(now - before)
                    before = now

    await asyncio.gather(*(lane() for _ in range(options.parallel)))
    return firsts, gaps


async def compare(client: EngineClient, policy: Policy, options: argparse.Namespace) -> dict[str, object]:
    """Run the rounds and return the result."""
    pooled: dict[str, tuple[list[float], list[float]]] = {"quiet": ([], []), "swapping": ([], [])}
    ratios = []
    await policy.swap()
    await stretch(client, policy, options, seed=0)
    policy.loads.clear()
    for number in range(options.rounds):
        # which comes first alternates: a machine that slows down favours neither
        worst = {}
        for way in ("quiet", "swapping") if number % 2 == 0 else ("swapping", "quiet"):
            swapping = asyncio.create_task(policy.every_second()) if way == "swapping" else None
            firsts, gaps = await stretch(client, policy, options, seed=1 + number)
            if swapping is not None:
                swapping.cancel()
                with suppress(asyncio.CancelledError):
                    await swapping
                await policy.unload_old()
            pooled[way][0].extend(firsts)
            pooled[way][1].extend(gaps)
            worst[way] = p99(firsts)
            print(number, way, f"p99 {p99(firsts):.3f} s of {len(firsts)}", flush=True)
        ratios.append(worst["swapping"] / worst["quiet"])
    return {
        "ratio": statistics.median(ratios),
        "ratio_of_all_rounds_together": p99(pooled["swapping"][0]) / p99(pooled["quiet"][0]),
        "ratio_of_gaps": p99(pooled["swapping"][1]) / p99(pooled["quiet"][1]),
        "load_median_s": statistics.median(policy.loads),
        "load_max_s": max(policy.loads),
        "loads": len(policy.loads),
        **{
            way: {
                "requests": len(firsts),
                "first_token_median_s": statistics.median(firsts),
                "first_token_p99_s": p99(firsts),
                "gap_p99_s": p99(gaps),
            }
            for way, (firsts, gaps) in pooled.items()
        },
        "target": 1.1,
        "sizes": {
            name: getattr(options, name)
            for name in ("model", "rounds", "seconds", "parallel", "prompt", "reply")
        },
    }


async def run(options: argparse.Namespace) -> None:
    """Measure and write the result."""
    with tempfile.TemporaryDirectory(prefix="bench-swap-") as name:
        folder = Path(name)
        served = options.served = _engine.model_directory(options.model, folder)
        directories = [
            _engine.write_adapter(folder / f"version-{i}", served, seed=i) for i in range(VERSIONS)
        ]
        places = int(options.seconds / EVERY_S) + 6
        with _engine.engine(served, folder, loaded_slots=places) as server:
            async with _engine.client(server) as client:
                result = await compare(client, Policy(client, directories), options)
    (_engine.bench_directory() / options.output).write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=_engine.MODELS, default="embedded")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each stretch")
    parser.add_argument("--parallel", type=int, default=3)
    parser.add_argument("--prompt", type=int, default=32, help="tokens")
    parser.add_argument("--reply", type=int, default=12, help="tokens")
    parser.add_argument("--output", default="swap.json", help="the file's name in var/bench")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
