"""Read the body of `POST /v1/chat/completions`: everything is checked before anything is spent."""

import json
import math
from dataclasses import dataclass, field
from typing import Any, NoReturn

import orjson
from django.conf import settings

from apps.accounts.names import LONGEST_END_USER
from apps.conversations.canonical import Message, clean
from apps.gateway import fields
from apps.gateway.forms import read_call_form, read_response_format
from apps.gateway.messages import read_messages, read_tools
from kernel.errors import InvalidInput
from kernel.nesting import is_deeper

_READ = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "temperature", "top_p", "top_k", "min_p"),
        *("max_tokens", "max_completion_tokens", "stop", "seed", "frequency_penalty", "presence_penalty"),
        *("n", "logprobs", "top_logprobs", "tools", "tool_choice", "parallel_tool_calls", "response_format"),
        *("chat_template_kwargs", "user", "session_id"),
    }
)
_KNOWN_UNSUPPORTED = frozenset(
    {
        *("audio", "function_call", "functions", "logit_bias", "metadata", "modalities", "prediction"),
        *("prompt_cache_key", "reasoning_effort", "safety_identifier", "service_tier", "store", "verbosity"),
        *("web_search_options", "best_of", "echo", "suffix"),
    }
)
_MOST_TOKENS = 1_000_000
_MOST_STOPS = 4
_DEEPEST = 100
_TEMPLATES_OWN = frozenset({"messages", "tools", "add_generation_prompt"})
_MOST_TOP_LOGPROBS = 20
_LONGEST_STOP = 200


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A valid request. What the client left out is None or absent from `sampling`."""

    model: str
    messages: list[Message]
    stream: bool = False
    include_usage: bool = False
    logprobs: bool = False
    top_logprobs: int = 0
    sampling: dict[str, Any] = field(default_factory=dict)
    """temperature, top_p, top_k, min_p, frequency_penalty, presence_penalty, seed, stop,
    max_tokens, and what forces a form: json_schema, structural_tag."""
    tools: list[dict[str, Any]] | None = None
    """None too where the client's `tool_choice` is "none": the model then sees no tools."""
    template_kwargs: dict[str, Any] = field(default_factory=dict)
    end_user: str | None = None
    session: str | None = None


def parse_json(body: bytes) -> dict[str, Any]:
    """Return the JSON object in `body`; raises InvalidInput for anything else."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        value = _with_lone_surrogates(body, error)
    if not isinstance(value, dict):
        raise InvalidInput("The body must be a JSON object.", code="invalid_json")
    if body.count(b"[") + body.count(b"{") > _DEEPEST and is_deeper(value, _DEEPEST):
        # what is stored and sent on is written as JSON again, for which there is a limit too
        raise InvalidInput(f"The body nests deeper than {_DEEPEST} levels.", code="invalid_json")
    return value


def _with_lone_surrogates(body: bytes, error: Exception) -> Any:
    # half a surrogate pair is legal JSON that some clients send;
    # it has to be replaced for the engine as for the ledger
    invalid = InvalidInput(f"The body is not valid JSON: {error}.", code="invalid_json")
    if b"\\u" not in body:
        raise invalid from error
    try:
        return clean(
            json.loads(body, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_of_64_bits)
        )
    except (ValueError, RecursionError):
        raise invalid from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _of_64_bits(text: str) -> int:
    # what orjson reads without half a surrogate beside it
    if len(text) > 20 or not -(2**63) <= (number := int(text)) < 2**64:
        raise ValueError("a whole number is too large")
    return number


def read_chat_request(body: dict[str, Any]) -> ChatRequest:
    """Return the request in `body`; raises InvalidInput naming the first thing that is wrong or unserved."""
    _refuse_others(body)
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise fields.wrong("model", "the name of a model", code="missing_required_parameter")
    stream = fields.flag(body, "stream") or False
    logprobs = fields.flag(body, "logprobs") or False
    tools = _tools(body)
    return ChatRequest(
        model=model,
        messages=read_messages(body.get("messages")),
        stream=stream,
        include_usage=_include_usage(body, stream=stream),
        logprobs=logprobs,
        top_logprobs=_top_logprobs(body, logprobs=logprobs),
        sampling={**_sampling(body), **_grammar(body, tools)},
        tools=tools,
        template_kwargs=_template_kwargs(body.get("chat_template_kwargs")),
        end_user=fields.text(body, "user", longest=LONGEST_END_USER),
        session=fields.text(body, "session_id", longest=200),
    )


def _refuse_others(body: dict[str, Any]) -> None:
    for name, value in body.items():
        if name in _READ:
            continue
        if name in _KNOWN_UNSUPPORTED:
            if value is None:
                continue
            raise InvalidInput(f"Unsupported parameter: `{name}`.", field=name, code="unsupported_parameter")
        raise fields.unknown("", name)
    if body.get("n") is not None and (body["n"] != 1 or isinstance(body["n"], bool)):
        raise fields.unsupported("n", "Another value of `n` than 1")


def _include_usage(body: dict[str, Any], *, stream: bool) -> bool:
    options = body.get("stream_options")
    if options is None:
        return False
    if not stream:
        raise InvalidInput(
            "`stream_options` is only allowed with `stream`.", field="stream_options", code="invalid_value"
        )
    options = fields.mapping(options, "stream_options")
    fields.only(options, "stream_options", frozenset({"include_usage"}))
    wanted = options.get("include_usage")
    if wanted is not None and not isinstance(wanted, bool):
        raise fields.wrong("stream_options.include_usage", "true or false")
    return bool(wanted)


def _top_logprobs(body: dict[str, Any], *, logprobs: bool) -> int:
    top = fields.integer(body, "top_logprobs", 0, _MOST_TOP_LOGPROBS) or 0
    if top and not logprobs:
        raise InvalidInput(
            "`top_logprobs` is only allowed with `logprobs`.", field="top_logprobs", code="invalid_value"
        )
    return top


def _grammar(body: dict[str, Any], tools: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Return what makes the engine write nothing but the asked form; turns written so are no free samples."""
    schema = read_response_format(body.get("response_format"))
    form = read_call_form(
        body.get("tool_choice"),
        tools,
        strict=frozenset(
            tool["function"]["name"] for tool in body.get("tools") or [] if tool["function"].get("strict")
        ),
        at_most_one=fields.flag(body, "parallel_tool_calls") is False,
    )
    if schema is not None and tools:
        raise fields.unsupported("response_format", "A `response_format` beside `tools`")
    if schema is not None:
        return {"json_schema": schema}
    return {"structural_tag": form} if form is not None else {}


def _sampling(body: dict[str, Any]) -> dict[str, Any]:
    limits = [fields.integer(body, name, 1, _MOST_TOKENS) for name in ("max_tokens", "max_completion_tokens")]
    if None not in limits and limits[0] != limits[1]:
        raise fields.wrong("max_completion_tokens", "the same as `max_tokens` where both are given")
    top_p = fields.number(body, "top_p", 0.0, 1.0)
    if top_p == 0.0:
        raise fields.wrong("top_p", "more than 0")
    read = {
        "temperature": fields.number(body, "temperature", 0.0, 2.0),
        "top_p": top_p,
        "top_k": fields.integer(body, "top_k", 1, _MOST_TOKENS),
        "min_p": fields.number(body, "min_p", 0.0, 1.0),
        "frequency_penalty": fields.number(body, "frequency_penalty", -2.0, 2.0),
        "presence_penalty": fields.number(body, "presence_penalty", -2.0, 2.0),
        "seed": _seed(body),
        "stop": _stop(body.get("stop")),
        "max_tokens": limits[1] if limits[1] is not None else limits[0],
    }
    return {name: value for name, value in read.items() if value is not None}


def _seed(body: dict[str, Any]) -> int | None:
    seed = fields.integer(body, "seed", -(2**63), 2**63 - 1)
    if seed is not None and not settings.ENGINE_HONOURS_SEED:
        raise InvalidInput(
            "Unsupported parameter: `seed`. The engines here draw by chance alone.",
            field="seed",
            code="unsupported_parameter",
        )
    return seed


def _stop(value: Any) -> list[str] | None:
    if value is None or value == []:
        return None
    stops = [value] if isinstance(value, str) else value
    if (
        not isinstance(stops, list)
        or len(stops) > _MOST_STOPS
        or not all(isinstance(stop, str) and 0 < len(stop) <= _LONGEST_STOP for stop in stops)
    ):
        raise fields.wrong(
            "stop", f"a string or a list of at most {_MOST_STOPS} strings of 1 to {_LONGEST_STOP} characters"
        )
    return stops


def _tools(body: dict[str, Any]) -> list[dict[str, Any]] | None:
    tools = read_tools(body.get("tools"))
    choice = body.get("tool_choice")
    if choice not in (None, "auto", "none", "required") and not isinstance(choice, dict):
        raise fields.wrong("tool_choice", "`none`, `auto`, `required` or a function")
    if choice not in (None, "none") and tools is None:
        raise InvalidInput(
            "`tool_choice` is only allowed with `tools`.", field="tool_choice", code="invalid_value"
        )
    return None if choice == "none" else tools


def _template_kwargs(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    arguments = fields.mapping(value, "chat_template_kwargs")
    for name, argument in arguments.items():
        plain = isinstance(argument, str | int | float | bool) and name.isidentifier()
        if not plain or name in _TEMPLATES_OWN:
            raise fields.wrong("chat_template_kwargs", "an object of names with plain values")
    return dict(arguments)
