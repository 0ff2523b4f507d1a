"""Time to first token of people's requests while shadow rollouts fill the time between them, against without.

The real engine, the real gateway and the task that writes shadow replies, as the clock starts it: it begins
once nobody asked for two seconds and lets go of the engine when a request is a row. People come in bursts:
some at a time, each with a few questions, then nobody for a while. Stretches with shadow rollouts switched on
for the policy of another tenant alternate with stretches in which they are off. `ratio` is the 99th
percentile with over the one without, the median of the rounds; `shadow_tokens` is what was written per second
of all of a stretch, bursts included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
INSIDE = "ATTUNE_BENCH_INSIDE"
WISH = "Answer in one short sentence."
BATCH = 192
"""Replies that a wave may write: more than a stretch has time for, so that no step is due meanwhile."""
LETS_GO_S = 4.0
"""After a stretch: until a wave that was interrupted is stored and the engine is idle."""


def main() -> None:
    """Read the options and measure, on servers of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=("embedded", "tiny"), default="embedded")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each stretch")
    parser.add_argument(
        "--pause", type=float, default=12.0, help="seconds without anybody between two bursts"
    )
    parser.add_argument("--people", type=int, default=3, help="at a time in a burst")
    parser.add_argument(
        "--requests", type=int, default=3, help="of each of them in a burst, one after another"
    )
    parser.add_argument("--words", type=int, default=24, help="of a question")
    parser.add_argument("--reply", type=int, default=12, help="tokens of a reply, at most")
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--output", default="shadow.json", help="the file's name in var/bench")
    options = parser.parse_args()
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        command = [
            sys.executable,
            "-m",
            "embedded.throwaway",
            "--",
            sys.executable,
            "-m",
            "tests.load.shadow",
        ]
        raise SystemExit(subprocess.run([*command, *sys.argv[1:]], check=False).returncode)
    with ExitStack() as stack:
        result = asyncio.run(compare(stack.enter_context(_stage(options)), options))
    from tests.load import _engine

    (_engine.bench_directory() / options.output).write_text(
        json.dumps(result, indent=2) + "\n", encoding="utf-8"
    )
    print(json.dumps(result, indent=2))


class Stage:
    """The platform under measurement: where people ask, and the switch of somebody else's shadow rollouts."""

    def __init__(self, *, url: str, key: str, learner: Any) -> None:
        self.url = url
        self.key = key
        self._learner = learner

    def switch(self, *, on: bool) -> None:
        """Switch shadow rollouts as the tenant does;
        what waits to be learned from is taken away, so that there is room."""
        from apps.learning.models import Sample, SampleState
        from apps.memory.services import set_setting
        from kernel.tenancy import tenant_scope

        with tenant_scope(self._learner.tenant.id):
            set_setting(policy=self._learner.policy, actor="bench", shadow=on)
            Sample.objects.filter(state=SampleState.READY).update(
                state=SampleState.DROPPED, reason="the benchmark's stretch is over"
            )

    def written(self) -> dict[str, int]:
        """Return how many shadow replies there are, how many of them were given up, and their tokens."""
        from django.db.models import Count, Q, Sum

        from apps.conversations.models import Turn, TurnKind, TurnState
        from kernel.tenancy import tenant_scope

        with tenant_scope(self._learner.tenant.id):
            found = Turn.objects.filter(kind=TurnKind.SHADOW).aggregate(
                replies=Count("id"),
                given_up=Count("id", filter=Q(state=TurnState.ABORTED)),
                tokens=Sum("output_ids__len"),
            )
        return {name: int(value or 0) for name, value in found.items()}


@contextmanager
def _stage(options: argparse.Namespace) -> Iterator[Stage]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-shadow-")))
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "config.settings.local",
            "SECRET_KEY": "bench",
            "ENGINE_API_KEY": "bench",
            "ENGINE_ADMIN_KEY": "bench-admin",
            "LOG_LEVEL": "WARNING",
        }
        import django

        django.setup()
        from django.conf import settings

        from tests.load import _engine

        served = settings.MODEL_PATH = _engine.model_directory(options.model, folder)
        os.environ["MODEL_PATH"] = str(served)
        owner = {"DATABASE_URL": os.environ["DATABASE_OWNER_URL"], "DATABASE_ROLE": "attune_owner"}
        migrate = [sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity", "0"]
        subprocess.run(migrate, env=os.environ | owner, check=True)
        server = stack.enter_context(_engine.engine(served, folder, loaded_slots=8))
        from tests.api.gateway_process import GatewayProcess
        from tests.tenants import add_somebody

        people, learner = add_somebody("people"), add_somebody("learner")
        _prepare(server.url, people, learner)
        gateway = GatewayProcess(
            model=served, log=folder / "gateway.log", LOG_LEVEL="WARNING", CONTEXT_LENGTH="1024"
        )
        stack.callback(gateway.stop)
        gateway.start()
        stack.enter_context(_worker(folder))
        yield Stage(url=f"{gateway.url}/v1", key=people.secret, learner=learner)


def _prepare(engine_url: str, people: Any, learner: Any) -> None:
    """Make the engine known, lift the limits of people,
    and give the other tenant's policy something to be taught.

    What its lesson is measured by is taken as measured: measuring is the same engine's work under the same
    look-out.
    """
    from apps.engines.models import Engine, EngineState
    from apps.evaluation.choosing.figures import Measured
    from apps.keys.services import set_limit
    from apps.memory.lessons import Standing, current_lesson, standing
    from apps.memory.services import add_preference
    from kernel.tenancy import tenant_scope
    from tests.load._somebody import MANY

    Engine.objects.create(url=engine_url, state=EngineState.READY, boot_id="1")
    for key_id in (people.key.id, None):
        set_limit(
            tenant_id=people.tenant.id,
            key_id=key_id,
            actor="bench",
            requests_per_minute=MANY,
            tokens_per_minute=MANY,
            concurrent=1_000,
        )
    with tenant_scope(learner.tenant.id):
        policy = learner.policy
        policy.config = {"batch_size": BATCH, "flush_s": 86_400}
        policy.save(update_fields=["config"])
        add_preference(policy_id=policy.id, user_id=learner.user.id, end_user=None, text=WISH, actor="bench")
        stands = standing(policy)
        if not isinstance(stands, Standing):
            raise SystemExit(f"nothing can be taught: {stands}")
        untold = Measured(
            passes=0,
            of=16,
            closeness=-1.5,
            on_topic=16,
            looping=0,
            empty=0,
            mean_tokens=48.0,
            k3=0.0,
            general=16,
            general_of=16,
        ).to_json()
        lesson = current_lesson(policy, stands)
        lesson.figures = {
            "yardstick": {"threshold": 0.1, "told": {**untold, "passes": 16}, "untold": untold},
            "replies": [],
            "best": untold,
            "course": [],
        }
        lesson.save()


@contextmanager
def _worker(folder: Path) -> Iterator[None]:
    """Run the process that looks for something to teach; it is there in both kinds of stretch."""
    with (folder / "worker.log").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.load._shadow_worker"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"looking\n":
            raise SystemExit((folder / "worker.log").read_text(encoding="utf-8")[-3000:])
        yield
        if process.poll() is not None:
            raise SystemExit((folder / "worker.log").read_text(encoding="utf-8")[-3000:])
    finally:
        process.terminate()
        process.wait()


async def compare(stage: Stage, options: argparse.Namespace) -> dict[str, Any]:
    """Run the rounds and return the result."""
    from asgiref.sync import sync_to_async

    from tests.load._requests import p99

    # a policy teaches unless it is told not to:
    # what began before the first stretch is not to be counted in it
    await sync_to_async(stage.switch)(on=False)
    await _people(stage, options, seed=0, seconds=1.0)
    await asyncio.sleep(LETS_GO_S)
    pooled: dict[str, list[float]] = {"without": [], "with": []}
    ratios: list[float] = []
    shadow = {"replies": 0, "given_up": 0, "tokens": 0}
    rates: list[float] = []
    for number in range(options.rounds):
        worst = {}
        # which comes first alternates: a machine that slows down favours neither
        for way in ("without", "with") if number % 2 == 0 else ("with", "without"):
            await sync_to_async(stage.switch)(on=way == "with")
            before, began = await sync_to_async(stage.written)(), time.monotonic()
            firsts = await _people(stage, options, seed=options.seed + number, seconds=options.seconds)
            took_s = time.monotonic() - began
            await sync_to_async(stage.switch)(on=False)
            # somebody comes: whatever is being written is let go of
            await _people(stage, options, seed=options.seed - 1 - number, seconds=0.0)
            await asyncio.sleep(LETS_GO_S)
            after = await sync_to_async(stage.written)()
            grown = {name: after[name] - before[name] for name in after}
            if way == "with":
                rates.append(grown["tokens"] / took_s)
                shadow = {name: shadow[name] + grown[name] for name in shadow}
            elif grown["tokens"]:
                raise SystemExit(f"{grown['tokens']} shadow tokens were written in a stretch without")
            pooled[way] += firsts
            worst[way] = p99(firsts)
            print(
                number,
                way,
                f"p99 {p99(firsts):.3f} s of {len(firsts)};",
                f"{grown['tokens'] / took_s:.1f} shadow tokens/s",
                flush=True,
            )
        ratios.append(worst["with"] / worst["without"])
    return {
        "ratio": statistics.median(ratios),
        "ratios": [round(ratio, 4) for ratio in ratios],
        "ratio_of_all_rounds_together": p99(pooled["with"]) / p99(pooled["without"]),
        "ratio_of_medians": statistics.median(pooled["with"]) / statistics.median(pooled["without"]),
        "shadow_tokens": statistics.median(rates),
        "shadow": shadow,
        **{
            way: {
                "requests": len(firsts),
                "first_token_median_s": statistics.median(firsts),
                "first_token_p99_s": p99(firsts),
            }
            for way, firsts in pooled.items()
        },
        "targets": {"ratio": 1.1, "shadow_tokens": 20.0},
        "sizes": {
            name: getattr(options, name)
            for name in ("model", "rounds", "seconds", "pause", "people", "requests", "words", "reply")
        },
        "seed": options.seed,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("sglang", "torch", "django", "openai")},
        },
        "machine": {"cores": os.cpu_count(), "load": os.getloadavg()[0]},
    }


async def _people(stage: Stage, options: argparse.Namespace, *, seed: int, seconds: float) -> list[float]:
    """Let bursts of people ask for some seconds (one burst at least); returns times to first token, seconds.

    A stretch begins and ends with a pause, so that each burst meets whatever goes on between people.
    """
    from apps.evaluation.chat import Chat, RequestLog
    from tests.load._requests import _WORDS

    chat = Chat(base_url=stage.url, api_key=stage.key, log=RequestLog())
    chance = random.Random(seed)

    async def person() -> None:
        for _ in range(options.requests):
            said = " ".join(chance.choices(_WORDS, k=options.words))
            await chat.ask(
                [{"role": "user", "content": f"{uuid.uuid4().hex[:8]} {said}"}],
                model="default",
                purpose="talk",
                max_tokens=options.reply,
                temperature=0.7,
                session=uuid.uuid4().hex,
            )

    end = time.monotonic() + seconds
    try:
        while True:
            if seconds:
                await asyncio.sleep(options.pause)
            await asyncio.gather(*(person() for _ in range(options.people)))
            if time.monotonic() + options.pause > end:
                break
        return [reply.first_token_s for _, reply in chat.log.replies]
    finally:
        await chat.close()


if __name__ == "__main__":
    main()
