"""The official `openai` client, with only the address and the key changed."""

import threading
from collections.abc import Iterator

import openai
import pytest

from tests.api.conftest import Chat
from tests.api.gateway_process import GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody

HI = [{"role": "user", "content": "hi"}]
SENTENCE = "One short sentence."


@pytest.fixture
def client(gateway: GatewayProcess, somebody: Somebody, engine: FakeEngine) -> Iterator[openai.OpenAI]:
    del engine
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=somebody.secret, max_retries=2) as made:
        yield made


def test_a_chat(client: openai.OpenAI, somebody: Somebody) -> None:
    reply = client.chat.completions.create(model="default", messages=HI, temperature=0.7, user="ann")

    assert reply.choices[0].message.content == SENTENCE
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.completion_tokens == 5
    (turn,) = somebody.turns()
    assert reply._request_id == str(turn.id)


def test_a_stream(client: openai.OpenAI, somebody: Somebody) -> None:
    with client.chat.completions.create(
        model="default", messages=HI, stream=True, stream_options={"include_usage": True}
    ) as stream:
        chunks = list(stream)

    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == SENTENCE
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 5
    assert [turn.state for turn in somebody.turns()] == ["complete"]


def test_a_conversation_is_one_session_without_any_header(client: openai.OpenAI, somebody: Somebody) -> None:
    messages: list[dict[str, object]] = []
    for text in ("one", "two", "three"):
        messages.append({"role": "user", "content": text})
        reply = client.chat.completions.create(model="default", messages=messages)
        messages.append(reply.choices[0].message.model_dump())  # with the SDK's null fields

    turns = somebody.turns()
    assert len({turn.session_id for turn in turns}) == 1
    assert [turn.parent_id for turn in turns] == [None, turns[0].id, turns[1].id]
    assert [turn.prompt_source for turn in turns] == ["first", "extended", "extended"]
    assert [turn.next_state for turn in turns] == [
        [{"role": "user", "content": "two"}],
        [{"role": "user", "content": "three"}],
        None,
    ]


def test_the_sdk_repeats_a_refused_request_by_itself(
    client: openai.OpenAI, somebody: Somebody, engine: FakeEngine
) -> None:
    engine.refuse_next(503, times=2)

    reply = client.chat.completions.create(model="default", messages=HI)

    assert reply.choices[0].message.content == SENTENCE
    assert [turn.state for turn in somebody.turns()] == ["failed", "failed", "complete"]


def test_a_lost_response_is_repeated_as_the_same_turn(
    client: openai.OpenAI, somebody: Somebody, engine: FakeEngine
) -> None:
    # the first try gives up while the engine still writes; its turn is aborted, the second is answered
    engine.hold = threading.Event()
    threading.Timer(1.0, engine.hold.set).start()

    reply = client.with_options(timeout=0.7).chat.completions.create(model="default", messages=HI)

    assert reply.choices[0].message.content == SENTENCE
    turns = somebody.turns()
    assert [turn.state for turn in turns][-1] == "complete"
    assert {turn.state for turn in turns[:-1]} <= {"aborted"}
    assert len({turn.session_id for turn in turns}) == 1


def test_a_stream_that_breaks_raises(client: openai.OpenAI, engine: FakeEngine) -> None:
    engine.delay_s = 0.02
    engine.die_after = 3
    stream = client.chat.completions.create(model="default", messages=HI, stream=True)

    with pytest.raises(openai.APIError):
        list(stream)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"model": "nothing"}, openai.NotFoundError),
        ({"n": 2}, openai.BadRequestError),
        ({"messages": [{"role": "user", "content": "x" * 5000}]}, openai.BadRequestError),
    ],
)
def test_refusals_become_the_sdks_own_exceptions(
    client: openai.OpenAI, fields: dict[str, object], error: type[openai.APIStatusError]
) -> None:
    with pytest.raises(error):
        client.chat.completions.create(**{"model": "default", "messages": HI, **fields})


def test_a_wrong_key_is_an_authentication_error(gateway: GatewayProcess) -> None:
    with (
        openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="sk-wrong", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError) as raised,
    ):
        client.models.list()
    assert raised.value.code == "invalid_api_key"


def test_models_are_listed_and_found(client: openai.OpenAI, chat: Chat) -> None:
    del chat
    (one,) = client.models.list().data

    assert (one.id, one.object, one.owned_by) == ("default", "model", "attune")
    assert client.models.retrieve("default").id == "default"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nothing")
