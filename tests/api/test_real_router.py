"""Two gateways, two real engines, and a real sglang-router between them."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from pytest_django import Settings

from apps.engines.models import Engine as EngineRow
from apps.engines.services import reconcile
from embedded import processes
from embedded.engine import Engine
from embedded.home import free_port
from tests.api.gateway_process import GatewayProcess
from tests.api.real_fleet import FORCED, LONG, SCHEMA, Fleet, ask, said, unlimited
from tests.engines import Engines
from tests.tenants import Somebody, add_somebody

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.xdist_group("engine")]

ROUTER = os.environ.get("SGLANG_ROUTER_PYTHON", "")
HOW = """SGLANG_ROUTER_PYTHON names no Python with sglang-router 0.3.2:
    python3.11 -m venv /opt/router && /opt/router/bin/pip install sglang-router==0.3.2
    export SGLANG_ROUTER_PYTHON=/opt/router/bin/python
Where https://openaipublic.blob.core.windows.net is out of reach, it does not start without a file of a format that is not used here:
    pip download --no-deps litellm==1.108.7 && unzip -p litellm-*.whl '*/fb374d419588a4632f3f557e76b4b70aebbca790' > FOLDER/o200k_base.tiktoken
    export TIKTOKEN_ENCODINGS_BASE=FOLDER"""


@contextmanager
def real_router(folder: Path, api_key: str) -> Iterator[str]:
    """Run a sglang-router that knows of no worker; yields its address."""
    if not ROUTER:
        pytest.fail(HOW, pytrace=False)
    port, log = free_port(), folder / "router.log"
    command = [ROUTER, "-m", "sglang_router.launch_router", "--enable-igw", "--api-key", api_key]
    command += ["--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(free_port())]
    command += ["--health-check-endpoint", "/ready", "--health-check-interval-secs", "2"]
    with log.open("wb") as output:
        process = processes.spawn(command, output=output)
    url, end = f"http://127.0.0.1:{port}", time.monotonic() + 90
    try:
        while True:
            try:
                httpx.get(f"{url}/liveness", trust_env=False)
                break
            except httpx.TransportError:
                if process.poll() is not None or time.monotonic() > end:
                    pytest.fail(f"the router did not start; {HOW}\n{log.read_text()[-3000:]}", pytrace=False)
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        processes.end(process)


def passed(log: Path) -> int:
    """Return how many generations a router has answered."""
    return sum("/generate" in line and "status_code" in line for line in log.read_text().splitlines())


def test_a_real_router_passes_each_request_to_the_engine_that_was_chosen_and_stops_it(
    fleet: Fleet, engine_process: Engines, settings: Settings, tmp_path: Path
) -> None:
    somebody = add_somebody("acme")
    unlimited(somebody)
    with real_router(tmp_path, fleet.engines[0].api_key) as url:
        settings.ENGINE_ROUTER_URL = url
        reconcile()
        fleet.publish(somebody, None, 1)
        gateway, straight = fleet.gateway(ENGINE_ROUTER_URL=url), fleet.gateway()
        log = tmp_path / "router.log"

        # the same is answered through it as past it, each by the engine that was chosen
        ways = [{}, {"stream": True, "logprobs": True}, {"response_format": SCHEMA}]
        for number, way in enumerate(ways, start=1):
            same = {"temperature": 0, "messages": said(), "max_tokens": 32} | way
            routed, direct = (ask(one, somebody, **same) for one in (gateway, straight))
            assert (routed.status, routed.version, routed.finished, routed.text) == (
                200, 1, True, direct.text,
            )  # fmt: skip
            assert passed(log) == number
        first, *others = somebody.turns()
        assert {turn.engine_id for turn in others} == {first.engine_id}  # one policy, one engine
        turns = somebody.turns()
        for one, other in zip(turns[::2], turns[1::2], strict=True):
            assert one.output_ids == other.output_ids
            # the second finds the prompt in the cache, and sums in another order
            assert one.output_logprobs == pytest.approx(other.output_logprobs, abs=1e-4)
        # many at once, of the policy and of the bare base: where the ledger says, by the engines' own count
        before = {engine.url: served(engine) for engine in fleet.engines}
        with ThreadPoolExecutor(8) as pool:
            many = list(
                pool.map(lambda i: ask(gateway, somebody, max_tokens=16, stream=bool(i % 2)), range(32))
            )
        assert {(one.status, one.finished) for one in many} == {(200, True)}
        url_of = dict(EngineRow.objects.values_list("id", "url"))
        asked = Counter(url_of[turn.engine_id] for turn in somebody.turns()[-32:])
        assert {engine.url: served(engine) - before[engine.url] for engine in fleet.engines} == {
            engine.url: asked[engine.url] for engine in fleet.engines
        }
        assert passed(log) == len(ways) + 32
        # a forced call has a parameter that the router leaves out: it goes past it
        assert ask(gateway, somebody, **FORCED).calls == 1
        assert passed(log) == len(ways) + 32

        leaves(gateway, somebody)
        end = time.monotonic() + 5
        while sum(running(engine) for engine in fleet.engines) and time.monotonic() < end:
            time.sleep(0.05)
        assert [running(engine) for engine in fleet.engines] == [0, 0]

        # an engine that is gone is left for the other one, behind a router too
        dies = url_of[somebody.turns()[0].engine_id]
        (killed,) = [engine for engine in fleet.engines if engine.url == dies]
        engine_process.kill(killed)
        after = [ask(gateway, somebody, max_tokens=8, stream=bool(i % 2)) for i in range(4)]
        assert {(one.status, one.finished) for one in after} == {(200, True)}
        (left,) = [pk for pk, url in url_of.items() if url != dies]
        assert {turn.engine_id for turn in somebody.turns()[-4:]} == {left}
        assert Counter(turn.state for turn in somebody.turns()) == {"complete": 43, "aborted": 3}


def leaves(gateway: GatewayProcess, somebody: Somebody) -> None:
    """Begin to read three long replies and go away."""
    body = {"model": "default", "temperature": 1, "messages": said(), "stream": True, **LONG}
    with httpx.Client(trust_env=False, timeout=60) as client:
        for _ in range(3):
            with client.stream(
                "POST", f"{gateway.url}/v1/chat/completions", json=body, headers=somebody.headers
            ) as response:
                assert response.status_code == 200
                next(line for line in response.iter_lines() if '"content":"\\"' in line)


def running(engine: Engine) -> int:
    """Return how many requests an engine has."""
    headers = {"Authorization": f"Bearer {engine.api_key}"}
    loads = httpx.get(f"{engine.url}/v1/loads", headers=headers, trust_env=False).json()["loads"]
    return sum(int(load["num_running_reqs"]) + int(load["num_waiting_reqs"]) for load in loads)


def served(engine: Engine) -> int:
    """Return how many requests an engine has answered to their end."""
    told = httpx.get(f"{engine.url}/metrics", trust_env=False).text
    name = "sglang:num_requests_total"
    return int(sum(float(line.rpartition(" ")[2]) for line in told.splitlines() if line.startswith(name)))
