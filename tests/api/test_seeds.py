"""A seed is honoured or refused."""

from collections.abc import Callable

import httpx

from tests.api.checks import refused
from tests.api.conftest import Chat
from tests.api.gateway_process import GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody

HI = [{"role": "user", "content": "hi"}]


def test_a_seed_is_refused_where_the_engines_would_ignore_it(
    chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    refused(chat(seed=5), 400, "unsupported_parameter", "seed")
    assert somebody.turns() == []
    assert chat(seed=None).status_code == 200
    assert "sampling_seed" not in engine.requests[0].sampling


def test_where_the_engines_draw_by_seed_every_request_has_one(
    start_gateway: Callable[..., GatewayProcess], somebody: Somebody, engine: FakeEngine
) -> None:
    seeded = start_gateway(ENGINE_HONOURS_SEED="true")

    for fields in ({"seed": 5}, {}, {}):
        body = {"model": "default", "messages": HI, **fields}
        response = httpx.post(
            f"{seeded.url}/v1/chat/completions", json=body, headers=somebody.headers, trust_env=False
        )
        assert response.status_code == 200
    seeded.stop()

    first, *others = (request.sampling["sampling_seed"] for request in engine.requests)
    assert first == 5
    assert len({first, *others}) == 3  # one that all shared would make equal prompts equal replies
    assert [turn.sampling.get("seed") for turn in somebody.turns()] == [5, None, None]
