"""Requests a second that the gateway answers on one core, with everything on, against the LiteLLM proxy.

Both ask the same fake engine (no delay) on loopback, both are pinned to one core, 16 requests in parallel
with distinct prompts; ours renders the template, counts tokens against limits, finds the session and commits
the turn to a durable Postgres before the last byte, LiteLLM runs without a database (`gateway_litellm.yaml`,
which says how to install it). Rounds alternate between the two. `ratio` and `ratio_streamed` are medians of
the rounds' ratios.

Without LITELLM_PYTHON only ours is measured.
"""

import argparse
import asyncio
import json
import os
import platform
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from embedded import model, processes
from embedded.database import Login, bootstrap
from embedded.home import Home, free_port
from embedded.postgres import Postgres
from embedded.valkey import Valkey
from kernel import machine
from tests.load._requests import Measured, drive, p99

ROOT = Path(__file__).resolve().parents[2]
CONFIG = Path(__file__).with_name("gateway_litellm.yaml")
SEED = 20261129


@dataclass(frozen=True, slots=True)
class Server:
    """Something that answers chats."""

    name: str
    url: str
    key: str
    pid: int

    def cpu_s(self) -> float:
        """Return the processor time that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Read the options, run, write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each of a round's measurements")
    parser.add_argument("--parallel", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=32, help="of a reply")
    parser.add_argument("--prompt-words", type=int, default=24)
    parser.add_argument("--core", type=int, default=0, help="the core that the servers share")
    parser.add_argument("--profile", action="store_true", help="profile ours and print where its time goes")
    options = parser.parse_args()
    result = run(options)
    directory = Home.from_environment().path / "bench"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "gateway.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Start everything, measure in rounds, and return the figures."""
    os.sched_setaffinity(0, set(range(os.cpu_count() or 1)) - {options.core} or {options.core})
    litellm = os.environ.get("LITELLM_PYTHON")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="attune-bench-")))
        engine = stack.enter_context(_engine(folder, tokens=options.tokens))
        servers = [stack.enter_context(_ours(folder, engine, options))]
        if litellm:
            servers.append(stack.enter_context(_litellm(folder, engine, litellm, options)))
        for server in servers:
            for stream in (False, True):
                _measure(server, options, stream=stream, seed=1, seconds=2.0)
        rounds = [
            {
                f"{server.name}{'_streamed' if stream else ''}": _measure(
                    server, options, stream=stream, seed=SEED + number, seconds=options.seconds
                )
                for stream in (False, True)
                for server in servers
            }
            for number in range(options.rounds)
        ]
    return _summary(rounds, options, litellm)


def _measure(
    server: Server, options: argparse.Namespace, *, stream: bool, seed: int, seconds: float
) -> dict[str, float]:
    cpu_s = server.cpu_s()
    measured: Measured = asyncio.run(
        drive(
            server.url,
            server.key,
            seconds=seconds,
            parallel=options.parallel,
            stream=stream,
            seed=seed,
            prompt_words=options.prompt_words,
        )
    )
    if measured.failed or not measured.took:
        raise SystemExit(f"{server.name}: {measured.failed} requests failed, {len(measured.took)} succeeded")
    figures = {
        "per_second": measured.per_second,
        "p99_s": p99(measured.took),
        "median_s": statistics.median(measured.took),
        "p99_first_s": p99(measured.first),
        "cpu_ms_per_request": 1000 * (server.cpu_s() - cpu_s) / len(measured.took),
        "requests": len(measured.took),
    }
    shown = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
    print(f"{server.name:8} {'streamed' if stream else 'whole':8} {shown}", file=sys.stderr)
    return figures


def _summary(
    rounds: list[dict[str, dict[str, float]]], options: argparse.Namespace, litellm: str | None
) -> dict[str, Any]:
    def median(of: Callable[[dict[str, dict[str, float]]], float]) -> float:
        return round(statistics.median(of(one) for one in rounds), 4)

    result: dict[str, Any] = {
        way: {figure: median(lambda one: one[way][figure]) for figure in rounds[0][way]}  # noqa: B023
        for way in rounds[0]
    }
    if litellm:
        for name, suffix in (("ratio", ""), ("ratio_streamed", "_streamed")):
            theirs, ours = f"litellm{suffix}", f"attune{suffix}"
            result[name] = median(lambda one: one[ours]["per_second"] / one[theirs]["per_second"])  # noqa: B023
            result[f"p99_{name}"] = median(lambda one: one[ours]["p99_s"] / one[theirs]["p99_s"])  # noqa: B023
            result[f"cpu_{name}"] = median(
                lambda one: one[theirs]["cpu_ms_per_request"] / one[ours]["cpu_ms_per_request"]  # noqa: B023
            )
    return {
        **result,
        "targets": {"ratio": 4.0, "ratio_streamed": 10.0, "p99_ratio": 0.25, "p99_ratio_streamed": 0.25},
        "sizes": {
            name: getattr(options, name)
            for name in ("rounds", "seconds", "parallel", "tokens", "prompt_words")
        },
        "seed": SEED,
        "versions": _versions(litellm),
        "rounds": rounds,
    }


def _versions(litellm: str | None) -> dict[str, str]:
    names = ("django", "uvicorn", "uvloop", "psycopg", "aiohttp", "orjson")
    code = "import sys, importlib.metadata as m; print(*(m.version(n) for n in sys.argv[1:]))"

    def asked(python: str, *of: str) -> list[str]:
        said = subprocess.run([python, "-c", code, *of], capture_output=True, text=True, check=True)
        return said.stdout.split()

    versions = dict(zip(names, asked(sys.executable, *names), strict=True))
    if litellm:
        versions["litellm"] = asked(litellm, "litellm")[0]
    return {
        **versions,
        "python": platform.python_version(),
        "processor": f"{machine.processor()} x {os.cpu_count()}",
    }


@contextmanager
def _running(
    command: list[str], *, env: dict[str, str], log: Path, core: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    pinned = ["taskset", "-c", str(core)] if core is not None else []
    with log.open("wb") as output:
        process = subprocess.Popen([*pinned, *command], cwd=ROOT, env=env, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path, within_s: float = 120.0) -> None:
    end = time.monotonic() + within_s
    while True:
        try:
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"no answer from {url}: {log.read_text()[-3000:]}")
        time.sleep(0.2)


@contextmanager
def _engine(folder: Path, *, tokens: int) -> Iterator[str]:
    port, log = free_port(), folder / "engine.log"
    command = [
        sys.executable,
        "-m",
        "tests.load._openai_engine",
        "--port",
        str(port),
        "--tokens",
        str(tokens),
    ]
    with _running(command, env=dict(os.environ), log=log) as process:
        _until_it_answers(f"http://127.0.0.1:{port}/ready", process, log)
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _ours(folder: Path, engine: str, options: argparse.Namespace) -> Iterator[Server]:
    home = Home.from_environment()
    model.convert(home)
    password = secrets.token_urlsafe(16)
    postgres = Postgres(folder / "postgres", password)
    valkey = Valkey(folder / "valkey", free_port(), password)
    with (folder / "servers.log").open("wb") as output:
        database, cache = postgres.start(output=output), valkey.start(output=output)
    try:
        owner = postgres.url(database="attune")
        env = os.environ | {
            "DJANGO_SETTINGS_MODULE": "config.settings.local",
            "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}",
            "SECRET_KEY": "bench",
            "DATABASE_URL": bootstrap(owner, login=Login("attune_login", password)),
            "REDIS_URL": valkey.url,
            "MODEL_PATH": str(model.directory(home, "bfloat16")),
            "LOG_LEVEL": "WARNING",
        }
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(
            migrate, cwd=ROOT, env=env | {"DATABASE_URL": owner, "DATABASE_ROLE": "attune_owner"}, check=True
        )
        seed = [sys.executable, "-m", "tests.load._somebody", engine]
        key = subprocess.run(
            seed, cwd=ROOT, env=env, check=True, capture_output=True, text=True
        ).stdout.strip()
        port, log = free_port(), folder / "gateway.log"
        profiled = ["-m", "cProfile", "-o", str(folder / "profile")] if options.profile else []
        uvicorn = ["-m", "uvicorn", "config.asgi_gateway:application", "--port", str(port)]
        command = [sys.executable, *profiled, *uvicorn, "--no-access-log", "--no-server-header"]
        with _running(command, env=env, log=log, core=options.core) as process:
            _until_it_answers(f"http://127.0.0.1:{port}/healthz", process, log)
            yield Server("attune", f"http://127.0.0.1:{port}", key, process.pid)
            if options.profile:
                process.send_signal(signal.SIGINT)  # the one after which Python still writes the profile
                process.wait(15)
        if options.profile:
            import pstats

            pstats.Stats(str(folder / "profile"), stream=sys.stderr).sort_stats("tottime").print_stats(60)
    finally:
        processes.end(cache)
        postgres.stop(database)


@contextmanager
def _litellm(folder: Path, engine: str, python: str, options: argparse.Namespace) -> Iterator[Server]:
    port, log, key = free_port(), folder / "litellm.log", f"sk-{secrets.token_urlsafe(12)}"
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DATABASE_URL")}
    env |= {
        "BENCH_ENGINE_URL": f"{engine}/v1",
        "BENCH_MASTER_KEY": key,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        "NO_PROXY": "127.0.0.1",
    }
    program = str(Path(python).with_name("litellm"))
    command = [
        program,
        "--config",
        str(CONFIG),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--num_workers",
        "1",
    ]
    with _running([*command, "--telemetry", "False"], env=env, log=log, core=options.core) as process:
        _until_it_answers(f"http://127.0.0.1:{port}/health/liveliness", process, log)
        yield Server("litellm", f"http://127.0.0.1:{port}", key, process.pid)


if __name__ == "__main__":
    main()
