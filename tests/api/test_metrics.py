"""What a gateway process counts."""

import re

import httpx

from tests.api.conftest import Chat
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody

HI = {"role": "user", "content": "hi"}


def value(http: httpx.Client, line: str) -> float:
    text = http.get("/metrics").text
    found = re.search(rf"^{re.escape(line)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_prompts_that_had_to_be_rendered_anew_are_counted_with_the_reason(
    http: httpx.Client, chat: Chat, somebody: Somebody
) -> None:
    lines = [
        'attune_prompts_total{reason="",source="first"}',
        'attune_prompts_total{reason="",source="extended"}',
        'attune_prompts_total{reason="tools changed",source="rendered"}',
    ]
    before = [value(http, line) for line in lines]
    reply = chat([HI]).json()["choices"][0]["message"]["content"]
    said = [HI, {"role": "assistant", "content": reply}, {"role": "user", "content": "more"}]
    chat(said)
    chat(said, tools=[{"type": "function", "function": {"name": "f"}}])

    assert [value(http, line) for line in lines] == [count + 1 for count in before]


def test_it_says_nothing_of_tenants(
    http: httpx.Client, chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    complete = value(http, 'attune_turns_ended_total{state="complete"}')
    chat("hi", user="ann")
    response = http.get("/metrics")

    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    assert value(http, 'attune_turns_ended_total{state="complete"}') == complete + 1
    for secret in (somebody.tenant.slug, str(somebody.tenant.id), somebody.key.public_id, "ann", "default"):
        assert secret not in response.text
