"""The clients that people have, unchanged,
against a real gateway and a real engine with a model of random weights.

What such a model says means nothing; that it is the same however it is asked for, and exactly what the ledger
holds, does. Its calls are forced through the engine's grammar: by itself it would never make one.
"""

import itertools
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import httpx
import openai
import pytest
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from apps.conversations.models import Feedback
from apps.engines.models import Engine as EngineRow
from apps.engines.models import EngineState
from embedded.engine import Engine
from kernel.tenancy import tenant_scope
from tests.api.checks import wait_for
from tests.api.frames import frames, text_of
from tests.api.gateway_process import GatewayProcess
from tests.engines import Engines
from tests.tenants import Somebody, add_somebody
from tests.tiny_model import build_tiny_model

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("engine")]

TEMPLATE = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content or '' }}"
    "{% for call in message.tool_calls or [] %}<tool_call>\n"
    '{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}'
    "\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
HI: Any = [{"role": "user", "content": "How do I boil an egg?"}]
PAINT = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "green"]}, "matt": {"type": "boolean"}},
    "required": ["colour", "matt"],
    "additionalProperties": False,
}
TOOLS: Any = [
    {"type": "function", "function": {"name": name, "description": "Paint a wall.", "parameters": PAINT}}
    for name in ("paint", "prime")
]
GREEDY: Any = {"temperature": 0, "max_tokens": 24}


class Paint(BaseModel):
    """How a wall is painted."""

    colour: Literal["red", "green"]
    matt: bool


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = build_tiny_model(tmp_path_factory.mktemp("clients") / "tiny")
    (model / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return model


@pytest.fixture
def real_engine(engine_process: Engines, tiny: Path) -> Engine:
    return engine_process(tiny)


@pytest.fixture(scope="module")
def gateway_of_tiny(
    engine_process: Engines, tiny: Path, start_gateway: Callable[..., GatewayProcess]
) -> GatewayProcess:
    engine = engine_process(tiny)
    return start_gateway(
        model=tiny,
        ENGINE_API_KEY=engine.api_key,
        ENGINE_ADMIN_KEY=engine.admin_key,
        CONTEXT_LENGTH="1800",
        MAX_REPLY_TOKENS="400",
    )


@pytest.fixture
def place(gateway_of_tiny: GatewayProcess, real_engine: Engine, ledger: None) -> str:
    EngineRow.objects.create(url=real_engine.url, state=EngineState.READY, boot_id="1")
    return gateway_of_tiny.url


@pytest.fixture
def somebody(ledger: None) -> Somebody:
    return add_somebody()


@pytest.fixture
def client(place: str, somebody: Somebody) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{place}/v1", api_key=somebody.secret, max_retries=0, timeout=60) as made:
        yield made


def is_call_of_paint(function: Any, name: str = "paint") -> None:
    assert function.name == name
    arguments = json.loads(function.arguments)
    assert set(arguments) == {"colour", "matt"}
    assert arguments["colour"] in ("red", "green")
    assert isinstance(arguments["matt"], bool)


def test_a_chat_is_the_same_streamed_and_whole_and_in_the_ledger(
    client: openai.OpenAI, somebody: Somebody
) -> None:
    whole = client.chat.completions.create(
        model="default", messages=HI, logprobs=True, top_logprobs=2, **GREEDY
    )
    chunks = list(
        client.chat.completions.create(
            model="default",
            messages=HI,
            logprobs=True,
            top_logprobs=2,
            stream=True,
            stream_options={"include_usage": True},
            **GREEDY,
        )
    )

    (choice,) = whole.choices
    assert choice.logprobs is not None
    said = choice.logprobs.content or []
    streamed = [one for chunk in chunks if chunk.choices for one in _logprobs(chunk)]
    assert whole.usage is not None
    assert whole.usage.completion_tokens == len(said) == 24
    assert choice.finish_reason == "length"
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == choice.message.content
    assert [(one.token, one.bytes) for one in streamed] == [(one.token, one.bytes) for one in said]
    # greedy: the likeliest is what was said
    assert [one.top_logprobs[0].token for one in said] == [one.token for one in said]
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 24
    first, second = somebody.turns()
    assert first.output_ids == second.output_ids
    assert first.output_logprobs == [one.logprob for one in said]
    assert second.output_logprobs == [one.logprob for one in streamed]
    assert first.reply == {"role": "assistant", "content": choice.message.content}


def _logprobs(chunk: Any) -> list[Any]:
    told = chunk.choices[0].logprobs
    return [] if told is None else told.content


def test_a_conversation_goes_on_with_the_exact_tokens(client: openai.OpenAI, somebody: Somebody) -> None:
    messages = list(HI)
    for text in ("And a soft one?", "And without water?"):
        reply = client.chat.completions.create(
            model="default", messages=messages, temperature=1, max_tokens=12
        )
        messages += [reply.choices[0].message.model_dump(), {"role": "user", "content": text}]
    client.chat.completions.create(model="default", messages=messages, **GREEDY)

    turns = somebody.turns()
    assert [turn.prompt_source for turn in turns] == ["first", "extended", "extended"]
    for before, after in itertools.pairwise(turns):
        known = [*before.prompt_ids, *before.output_ids]
        assert after.prompt_ids[: len(known)] == known


def test_a_stop_text_ends_the_reply_before_it(client: openai.OpenAI) -> None:
    free = client.chat.completions.create(model="default", messages=HI, **GREEDY).choices[0].message.content
    assert free is not None
    stop = free[5:7]

    held = client.chat.completions.create(model="default", messages=HI, stop=[stop], **GREEDY).choices[0]

    assert held.message.content == free[: free.index(stop)]
    assert held.finish_reason == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_a_schema_holds_the_reply(client: openai.OpenAI, *, stream: bool) -> None:
    asked: Any = {
        "model": "default",
        "messages": HI,
        "temperature": 1,
        "response_format": {"type": "json_schema", "json_schema": {"name": "paint", "schema": PAINT}},
    }
    if stream:
        chunks = list(client.chat.completions.create(stream=True, **asked))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        reason = chunks[-1].choices[0].finish_reason
    else:
        choice = client.chat.completions.create(**asked).choices[0]
        text, reason = choice.message.content or "", choice.finish_reason

    assert reason == "stop"
    assert Paint.model_validate_json(text).model_dump() == json.loads(text)


def test_the_sdks_own_parsing(client: openai.OpenAI) -> None:
    parsed = client.chat.completions.parse(model="default", messages=HI, response_format=Paint, temperature=1)

    assert isinstance(parsed.choices[0].message.parsed, Paint)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "prime"}}])
def test_a_forced_call_and_its_result(
    client: openai.OpenAI, somebody: Somebody, *, stream: bool, choice: Any
) -> None:
    asked: Any = {"model": "default", "tools": TOOLS, "tool_choice": choice, "temperature": 1}
    if stream:
        with client.chat.completions.stream(messages=HI, **asked) as events:
            for _ in events:
                pass
            message = events.get_final_completion().choices[0].message
    else:
        message = client.chat.completions.create(messages=HI, **asked).choices[0].message

    assert message.tool_calls is not None
    (call,) = message.tool_calls
    is_call_of_paint(call.function, call.function.name if choice == "required" else "prime")
    said = message.model_dump(include={"role", "content", "tool_calls"})
    result = {"role": "tool", "tool_call_id": call.id, "content": "done"}
    after = client.chat.completions.create(
        model="default", messages=[*HI, said, result], tools=TOOLS, **GREEDY
    )

    assert after.choices[0].finish_reason == "length"
    first, second = somebody.turns()
    assert (second.parent_id, second.prompt_source) == (first.id, "extended")
    assert first.next_state == [result]
    known = [*first.prompt_ids, *first.output_ids]
    assert second.prompt_ids[: len(known)] == known


def test_parallel_calls_and_results_that_another_model_made(
    client: openai.OpenAI, somebody: Somebody
) -> None:
    calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": "paint", "arguments": '{"colour": "red"}'}}
        for i in range(2)
    ]
    results = [{"role": "tool", "tool_call_id": f"c{i}", "content": str(i)} for i in range(2)]

    reply = client.chat.completions.create(
        model="default",
        messages=[*HI, {"role": "assistant", "content": None, "tool_calls": calls}, *results],  # type: ignore[list-item]
        tools=TOOLS,
        **GREEDY,
    )

    assert reply.choices[0].message.content
    (turn,) = somebody.turns()
    assert [message["role"] for message in turn.messages] == ["user", "assistant", "tool", "tool"]
    assert turn.messages[1] == {"role": "assistant", "content": None, "tool_calls": calls}


def test_strict_tools_and_one_call_at_most_leave_the_model_free_to_talk(client: openai.OpenAI) -> None:
    strict = [{"type": "function", "function": {**tool["function"], "strict": True}} for tool in TOOLS]

    reply = client.chat.completions.create(
        model="default", messages=HI, tools=strict, parallel_tool_calls=False, **GREEDY
    )
    free = client.chat.completions.create(model="default", messages=HI, tools=TOOLS, **GREEDY)

    assert reply.choices[0].message.content == free.choices[0].message.content


def test_responses(client: openai.OpenAI, somebody: Somebody) -> None:
    asked: Any = {"model": "default", "temperature": 0, "max_output_tokens": 24}
    whole = client.responses.create(input="How do I boil an egg?", **asked)
    events = list(client.responses.create(input="How do I boil an egg?", stream=True, **asked))

    assert whole.status == "incomplete"
    assert whole.incomplete_details is not None
    assert whole.incomplete_details.reason == "max_output_tokens"
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == whole.output_text != ""
    assert events[-1].type == "response.incomplete"
    chat = client.chat.completions.create(model="default", messages=HI, **GREEDY)
    assert chat.choices[0].message.content == whole.output_text
    assert len({tuple(turn.prompt_ids) for turn in somebody.turns()}) == 1


def test_a_tool_of_responses(client: openai.OpenAI, somebody: Somebody) -> None:
    tools: Any = [{"type": "function", "strict": True, **tool["function"]} for tool in TOOLS]
    asked: Any = {"model": "default", "tools": tools, "temperature": 1}
    question: Any = {"role": "user", "content": "Paint it."}
    reply = client.responses.create(input=[question], tool_choice="required", **asked)

    (call,) = reply.output
    assert call.type == "function_call"
    is_call_of_paint(call, call.name)
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "done"}
    after = client.responses.create(input=[question, call, result], max_output_tokens=8, **asked)  # type: ignore[list-item]

    assert after.output_text
    first, second = somebody.turns()
    assert (second.parent_id, second.prompt_source) == (first.id, "extended")


def test_feedback(client: openai.OpenAI, somebody: Somebody) -> None:
    reply = client.chat.completions.create(model="default", messages=HI, **GREEDY)

    given = client.post("/feedback", body={"turn_id": reply.id, "thumbs": "up"}, cast_to=object)

    assert isinstance(given, dict)
    assert (given["object"], given["score"]) == ("feedback", 1)
    with tenant_scope(somebody.tenant.id):
        assert [row.score for row in Feedback.objects.all()] == [1]


@pytest.fixture(params=[False, True], ids=["chat", "responses"])
def langchain(request: pytest.FixtureRequest, place: str, somebody: Somebody) -> ChatOpenAI:
    return ChatOpenAI(
        model="default",
        base_url=f"{place}/v1",
        api_key=somebody.secret,  # type: ignore[arg-type]
        use_responses_api=request.param,
        temperature=1,
        max_retries=0,
    )


def test_langchain_answers_and_streams(langchain: ChatOpenAI, somebody: Somebody) -> None:
    bound = langchain.bind(max_tokens=24, temperature=0)
    whole = bound.invoke("How do I boil an egg?").text

    assert "".join(chunk.text for chunk in bound.stream("How do I boil an egg?")) == whole != ""
    first, second = somebody.turns()
    assert first.output_ids == second.output_ids


def test_langchain_calls_tools(langchain: ChatOpenAI, somebody: Somebody) -> None:
    tools = langchain.bind_tools(TOOLS, tool_choice="paint", strict=True)
    asked: list[Any] = [("user", "Paint it.")]
    reply = tools.invoke(asked)

    (call,) = reply.tool_calls  # type: ignore[attr-defined]
    assert call["name"] == "paint"
    Paint.model_validate(call["args"])
    result = {"role": "tool", "content": "done", "tool_call_id": call["id"]}
    langchain.bind_tools(TOOLS).bind(max_tokens=8).invoke([*asked, reply, result])

    first, second = somebody.turns()
    assert (second.parent_id, second.prompt_source) == (first.id, "extended")


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_langchain_gives_structured_output(langchain: ChatOpenAI, method: Any) -> None:
    assert isinstance(langchain.with_structured_output(Paint, method=method).invoke("Paint it."), Paint)


@pytest.mark.parametrize("stream", [False, True])
def test_curl(place: str, somebody: Somebody, *, stream: bool) -> None:
    body = {"model": "default", "messages": HI, "stream": stream, **GREEDY}
    said = subprocess.run(
        [
            *("curl", "-sSN", "--noproxy", "*", f"{place}/v1/chat/completions"),
            *("-H", f"Authorization: Bearer {somebody.secret}", "-H", "Content-Type: application/json"),
            *("-d", json.dumps(body)),
        ],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    ).stdout

    (turn,) = somebody.turns()
    assert turn.state == "complete"
    if stream:
        assert said.endswith("data: [DONE]\n\n")
        assert text_of(frames(said)) == turn.reply["content"]
    else:
        assert json.loads(said)["choices"][0]["message"]["content"] == turn.reply["content"]


def test_a_client_that_leaves_stops_the_real_engine(
    place: str, real_engine: Engine, somebody: Somebody
) -> None:
    before = stopped(real_engine)
    # held to a long text: it cannot end by itself before the client leaves
    long = {"type": "json_schema", "json_schema": {"schema": {"type": "string", "minLength": 390}}}
    body = {"model": "default", "messages": HI, "stream": True, "temperature": 1, "response_format": long}
    with (
        httpx.Client(trust_env=False, timeout=30) as http,
        http.stream("POST", f"{place}/v1/chat/completions", json=body, headers=somebody.headers) as response,
    ):
        next(response.iter_bytes())

    wait_for(lambda: [turn.state for turn in somebody.turns()] == ["aborted"])
    wait_for(lambda: stopped(real_engine) == before + 1)
    (turn,) = somebody.turns()
    assert 0 < len(turn.output_ids) == len(turn.output_logprobs) < 390


def stopped(engine: Engine) -> float:
    """Return how many requests the engine has aborted."""
    told = httpx.get(f"{engine.url}/metrics", trust_env=False).text
    name = "sglang:num_aborted_requests_total"
    return sum(float(line.rpartition(" ")[2]) for line in told.splitlines() if line.startswith(name))
