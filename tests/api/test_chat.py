"""`POST /v1/chat/completions`, whole and streamed."""

import threading
import time
from typing import Any

import httpx
import pytest

from apps.accounts.models import EndUser
from kernel.tenancy import tenant_scope
from tests.api.conftest import Chat
from tests.api.frames import frames, text_of
from tests.api.gateway_process import CONTEXT_LENGTH, MAX_REPLY_TOKENS
from tests.api.loaded import make_loaded
from tests.chat_model import chatml
from tests.fake_engine import FakeEngine
from tests.fake_generation import ONE_SHORT_SENTENCE, Token
from tests.tenants import Somebody, add_version

SENTENCE = "One short sentence."
IDS = [token.id for token in ONE_SHORT_SENTENCE]
LOGPROBS = [-0.5, -0.25, -0.125, -0.0625, -0.03125]


def test_a_whole_reply_is_in_the_shape_and_in_the_ledger(
    chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    response = chat("hi", temperature=0.5, top_p=0.9, max_tokens=20)

    assert response.status_code == 200
    (turn,) = somebody.turns()
    prompt = len(chatml(("user", "hi")))
    assert response.json() == {
        "id": f"chatcmpl-{turn.id.hex}",
        "object": "chat.completion",
        "created": response.json()["created"],
        "model": "default",
        "system_fingerprint": "smollm2-135m-instruct",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": SENTENCE, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": 5,
            "total_tokens": prompt + 5,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
    }
    assert response.headers["content-length"] == str(len(response.content))
    assert (turn.state, turn.kind, turn.version_id) == ("complete", "live", None)
    assert turn.prompt_ids == chatml(("user", "hi"))
    assert turn.output_ids == IDS
    assert turn.output_logprobs == LOGPROBS
    assert turn.reply == {"role": "assistant", "content": SENTENCE}
    assert turn.spans == [[0, "smollm2-135m-instruct"]]
    assert turn.sampling == {"temperature": 0.5, "top_p": 0.9, "max_tokens": 20}
    assert turn.usage == {"prompt_tokens": prompt, "completion_tokens": 5, "cached_tokens": 0}
    assert turn.finish_reason == "stop"
    assert turn.first_token_ms is not None
    assert turn.latency_ms is not None
    assert 0 < turn.first_token_ms <= turn.latency_ms
    assert turn.engine_id is not None
    (asked,) = engine.requests
    assert asked.input_ids == turn.prompt_ids
    assert asked.sampling == {"temperature": 0.5, "top_p": 0.9, "max_new_tokens": 20}
    assert (asked.adapter, asked.stream) == (None, False)


def test_the_headers_say_who_answered(chat: Chat, somebody: Somebody, engine: FakeEngine) -> None:
    base = chat("hi")
    version = add_version(somebody.policy, 3)
    make_loaded(version, engine)
    tuned = chat("hi")

    first, second = somebody.turns()
    assert base.headers["x-adapter-version"] == "0"
    assert base.headers["x-adapter-hash"] == "base"
    assert base.headers["x-served-name"] == "smollm2-135m-instruct"
    assert base.headers["x-session-id"] == str(first.session_id)
    assert base.headers["x-turn-id"] == str(first.id)
    assert tuned.headers["x-adapter-version"] == "3"
    assert tuned.headers["x-adapter-hash"] == version.sha256
    assert tuned.headers["x-served-name"] == version.served_name
    assert tuned.json()["system_fingerprint"] == version.served_name
    assert second.version_id == version.id
    assert second.spans == [[0, version.served_name]]
    assert [request.adapter for request in engine.requests] == [None, version.served_name]


def test_a_client_that_names_no_temperature_gets_the_policys(
    chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    chat("hi")
    chat("hi", temperature=0)

    assert [request.sampling["temperature"] for request in engine.requests] == [0.7, 0.0]
    assert [turn.sampling["temperature"] for turn in somebody.turns()] == [0.7, 0.0]
    assert engine.requests[0].sampling["max_new_tokens"] == MAX_REPLY_TOKENS


@pytest.mark.parametrize(
    ("options", "with_usage", "null_usage"),
    [({}, False, False), ({"include_usage": False}, False, False), ({"include_usage": True}, True, True)],
)
def test_a_stream_ends_in_the_exact_sequence(
    chat: Chat, somebody: Somebody, options: dict[str, bool], *, with_usage: bool, null_usage: bool
) -> None:
    response = chat("hi", stream=True, stream_options=options or None)

    assert response.headers["content-type"] == "text/event-stream"
    *head, last = frames(response.text)
    assert last == "[DONE]"
    (turn,) = somebody.turns()
    assert {event["id"] for event in head} == {f"chatcmpl-{turn.id.hex}"}
    assert {event["object"] for event in head} == {"chat.completion.chunk"}
    usage = head.pop() if with_usage else None
    assert all(("usage" in event) is null_usage and event.get("usage") is None for event in head)
    choices = [event["choices"][0] for event in head]
    assert choices[0]["delta"] == {"role": "assistant", "content": ""}
    assert all(set(choice["delta"]) == {"content"} for choice in choices[1:-1])
    assert choices[-1]["delta"] == {}
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + ["stop"]
    assert text_of(head) == SENTENCE
    if usage is not None:
        assert usage["choices"] == []
        prompt = len(turn.prompt_ids)
        assert usage["usage"] == {
            "prompt_tokens": prompt,
            "completion_tokens": 5,
            "total_tokens": prompt + 5,
            "prompt_tokens_details": {"cached_tokens": 0},
        }


def test_a_streamed_turn_is_the_same_as_a_whole_one(chat: Chat, somebody: Somebody) -> None:
    chat("hi")
    response = chat("hi", stream=True)

    whole, streamed = somebody.turns()
    for name in ("prompt_ids", "output_ids", "output_logprobs", "reply", "spans", "usage", "sampling"):
        assert getattr(whole, name) == getattr(streamed, name), name
    assert response.headers["x-turn-id"] == str(streamed.id)


def test_the_first_token_of_a_whole_reply_is_when_the_engine_says(
    chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    engine.delay_s = 0.0625
    chat("hi")
    engine.tells_times = False
    chat("hi")
    chat("hi", stream=True)

    told, untold, streamed = somebody.turns()
    assert [request.stream for request in engine.requests] == [False, False, True]
    assert untold.first_token_ms is None
    assert untold.latency_ms is not None
    assert untold.latency_ms >= 5 * 62.5
    for turn, tokens_after in ((told, 4), (streamed, 0)):
        assert turn.first_token_ms is not None
        assert turn.latency_ms is not None
        assert 62.5 <= turn.first_token_ms <= turn.latency_ms - tokens_after * 62.5


def test_a_turn_is_durable_before_the_last_byte(
    http: httpx.Client, chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    engine.hold = threading.Event()
    body = {"model": "default", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    seen = ""
    with http.stream("POST", "/v1/chat/completions", json=body, headers=somebody.headers) as response:
        for piece in response.iter_text():
            seen += piece
            if SENTENCE in text_of(frames_so_far(seen)) and not engine.hold.is_set():
                # everything but the engine's last token has arrived
                assert [turn.state for turn in somebody.turns()] == ["pending"]
                engine.hold.set()
            if '"finish_reason":"stop"' in seen:
                (turn,) = somebody.turns()
                assert (turn.state, turn.output_ids) == ("complete", IDS)
    assert seen.endswith("data: [DONE]\n\n")


def frames_so_far(text: str) -> list[Any]:
    return frames(text[: text.rfind("\n\n") + 2])


def test_a_whole_reply_is_durable_when_it_arrives(chat: Chat, somebody: Somebody) -> None:
    for count in range(1, 11):
        chat("hi")
        assert [turn.state for turn in somebody.turns()] == ["complete"] * count


def test_the_next_request_continues_with_the_stored_tokens(
    chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    chat("hi")
    second = chat(
        [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": SENTENCE},
            {"role": "user", "content": "more"},
        ]
    )

    first, turn = somebody.turns()
    assert engine.requests[1].input_ids[: len(first.prompt_ids) + 5] == [*first.prompt_ids, *IDS]
    assert engine.requests[1].input_ids == turn.prompt_ids
    assert turn.parent_id == first.id
    assert first.next_state == [{"role": "user", "content": "more"}]
    assert second.headers["x-session-id"] == str(first.session_id)


def test_a_limit_of_tokens_ends_the_reply(chat: Chat, somebody: Somebody) -> None:
    response = chat("hi", max_completion_tokens=2)

    assert response.json()["choices"][0]["finish_reason"] == "length"
    assert response.json()["choices"][0]["message"]["content"] == "One short"
    assert somebody.turns()[0].finish_reason == "length"


def test_a_reply_gets_what_room_the_context_has_left(chat: Chat, engine: FakeEngine) -> None:
    prompt = len(chatml(("user", "x" * 500)))

    assert chat("x" * 500, max_tokens=5000).status_code == 200
    assert engine.requests[0].sampling["max_new_tokens"] == CONTEXT_LENGTH - prompt


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_text_is_not_given_out(chat: Chat, somebody: Somebody, *, stream: bool) -> None:
    response = chat("hi", stop=[" sentence"], stream=stream)

    text = text_of(frames(response.text)) if stream else response.json()["choices"][0]["message"]["content"]
    assert text == "One short"
    (turn,) = somebody.turns()
    assert turn.reply == {"role": "assistant", "content": "One short"}
    assert turn.output_ids == IDS[:3]


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_are_those_that_are_stored(chat: Chat, engine: FakeEngine, *, stream: bool) -> None:
    tokens = (Token(7, "a", -0.5), Token(8, "b", -1.5), Token(2, "", -0.1))
    engine.reply = lambda _: tokens

    response = chat("hi", logprobs=True, stream=stream)

    if stream:
        events = frames(response.text)[:-1]
        parts = [event["choices"][0]["logprobs"] for event in events]
        content = [one for part in parts if part for one in part["content"]]
    else:
        content = response.json()["choices"][0]["logprobs"]["content"]
    assert [one["logprob"] for one in content] == [-0.5, -1.5, -0.1]
    assert all(one["top_logprobs"] == [] for one in content)
    assert [bytes(one["bytes"]).decode() for one in content] == [one["token"] for one in content]


def test_three_streams_at_once_are_three_turns(chat: Chat, somebody: Somebody, engine: FakeEngine) -> None:
    engine.delay_s = 0.02
    texts: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: texts.append(chat("hi", stream=True, stream_options={"include_usage": True}).text)
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    turns = somebody.turns()
    assert [turn.state for turn in turns] == ["complete"] * 3
    assert {frames(text)[0]["id"] for text in texts} == {f"chatcmpl-{turn.id.hex}" for turn in turns}
    assert [frames(text)[-2]["usage"]["completion_tokens"] for text in texts] == [5, 5, 5]


def test_a_stream_is_whole_and_prompt_whatever_encoding_is_accepted(
    http: httpx.Client, chat: Chat, somebody: Somebody, engine: FakeEngine
) -> None:
    engine.hold = threading.Event()
    body = {"model": "default", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    headers = {**somebody.headers, "Accept-Encoding": "gzip, br"}
    raw = b""
    with http.stream("POST", "/v1/chat/completions", json=body, headers=headers) as response:
        assert "content-encoding" not in response.headers
        for piece in response.iter_raw():
            raw += piece
            engine.hold.set()  # only after the first bytes came
    assert text_of(frames(raw.decode())) == SENTENCE
    assert raw.endswith(b"data: [DONE]\n\n")


def test_a_side_turn_is_served_and_marked(chat: Chat, somebody: Somebody) -> None:
    assert chat("hi", headers={"X-Turn-Type": "side"}).status_code == 200
    assert chat("hi", headers={"X-Turn-Type": "main"}).status_code == 200

    assert [turn.side for turn in somebody.turns()] == [True, False]


@pytest.mark.parametrize("how", ["header", "body"])
def test_a_session_is_named_by_header_or_body(chat: Chat, somebody: Somebody, how: str) -> None:
    named: dict[str, Any] = {"headers": {"X-Session-Id": "s 1"}} if how == "header" else {"session_id": "s 1"}
    first, second = chat("one", **named), chat("two", **named)

    assert first.headers["x-session-id"] == second.headers["x-session-id"] == "s 1"
    turns = somebody.turns()
    assert turns[0].session_id == turns[1].session_id


def test_the_user_field_makes_an_end_user(chat: Chat, somebody: Somebody) -> None:
    chat("hi", user="ann")
    chat("hi", user="ann")

    with tenant_scope(somebody.tenant.id):
        assert [one.external_id for one in EndUser.objects.all()] == ["ann"]


def test_half_a_surrogate_is_served_and_stored_cleanly(
    http: httpx.Client, chat: Chat, somebody: Somebody
) -> None:
    body = b'{"model":"default","messages":[{"role":"user","content":"a\\ud83d b\\u0000"}],"stop":"\\udfff"}'

    response = http.post("/v1/chat/completions", content=body, headers=somebody.headers)

    assert response.status_code == 200
    (turn,) = somebody.turns()
    assert turn.messages == [{"role": "user", "content": "a\ufffd b\ufffd"}]
    assert turn.sampling["stop"] == ["\ufffd"]


def test_a_slow_engine_does_not_hold_up_others(
    chat: Chat, somebody: Somebody, engine: FakeEngine, http: httpx.Client
) -> None:
    engine.hold = threading.Event()
    slow = threading.Thread(target=lambda: chat("slow"))
    slow.start()
    engine.wait_for(lambda: len(engine.requests) == 1)

    started = time.monotonic()
    assert http.get("/healthz").json() == {"status": "ok", "running": 1}
    assert time.monotonic() - started < 1

    engine.hold.set()
    slow.join()
    assert http.get("/healthz").json() == {"status": "ok", "running": 0}
