"""Several engines behind the gateway: one that is gone is told to everybody at once; a cold policy is served."""

import time

import httpx
from django.conf import settings

from apps.engines.models import Engine, EngineState
from kernel.models import OutboxMessage
from kernel.tenancy import system_scope
from tests.api.conftest import Chat
from tests.fake_engine import FakeEngine


def test_a_request_that_finds_an_engine_gone_keeps_the_next_from_going_there(
    chat: Chat, engine: FakeEngine
) -> None:
    with FakeEngine(api_key=settings.ENGINE_API_KEY) as other:
        Engine.objects.create(url=other.url, state=EngineState.READY, boot_id="1")
        engine.stop()
        answers: list[httpx.Response] = []
        end = time.monotonic() + 20
        while Engine.objects.get(url=engine.url).state == EngineState.READY and time.monotonic() < end:
            answers.append(chat(f"hi {len(answers)}"))
            time.sleep(0.05)

        assert {answer.status_code for answer in answers} <= {200, 503}
        assert [answer.status_code for answer in answers].count(503) == 1
        assert "retry-after" in next(answer for answer in answers if answer.status_code == 503).headers
        assert [chat(f"again {i}").status_code for i in range(5)] == [200] * 5
        with system_scope("test"):
            assert OutboxMessage.objects.filter(task="workers.upkeep.reconcile_engines").count() == 1
