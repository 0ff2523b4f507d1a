"""A model's chat template: messages in, prompt text out, as the model's authors wrote it.

This is the environment that Hugging Face documents for `chat_template`, with jinja2 alone: importing
`transformers` for it would cost every process 3 s and 440 MB, most of it torch.
"""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import Template
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from kernel.errors import InvalidInput

Message = Mapping[str, Any]


class _GenerationBlock(Extension):
    """`{% generation %}` marks the assistant's text for trainers; here its body is rendered as it is."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.now().strftime(pattern)  # noqa: DTZ005 - templates mean the local date


def _tojson(
    value: Any,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 - the filter's documented signature
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    # jinja's own filter escapes for HTML, which no model was trained on
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _compile(source: str) -> Template:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment.from_string(source)


def _source_of(model: Path, tokenizer_config: Mapping[str, Any]) -> str:
    beside = model / "chat_template.jinja"
    if beside.exists():
        return beside.read_text(encoding="utf-8")
    source = tokenizer_config.get("chat_template")
    if isinstance(source, list):
        source = {entry["name"]: entry["template"] for entry in source}.get("default")
    if not isinstance(source, str):
        raise InvalidInput(f"{model} has no chat template: a base or embedding model cannot be chatted with")
    return source


class ChatTemplate:
    """The compiled template of one model directory, with the special tokens that it may name."""

    def __init__(self, model: Path) -> None:
        config = json.loads((model / "tokenizer_config.json").read_text(encoding="utf-8"))
        self.source = _source_of(model, config)
        self._template = _compile(self.source)
        self._special = {
            name: value["content"] if isinstance(value, dict) else value
            for name, value in config.items()
            if name.endswith("_token") and isinstance(value, str | dict)
        }

    @property
    def knows_tools(self) -> bool:
        """Whether the template shows tools to the model at all; one that does not drops them silently."""
        return "tools" in self.source

    def text(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None,
        generate: bool,
        extra: Mapping[str, Any] | None,
    ) -> str:
        """Return the prompt's text; with `generate` it ends where the assistant begins to speak.

        The messages are in the form of `as_templates_expect`.
        Raises InvalidInput with the template's own words where it refuses the messages.
        """
        context = {
            **self._special,
            **(extra or {}),
            "messages": list(messages),
            "tools": list(tools) if tools else None,
            "documents": None,
            "add_generation_prompt": generate,
        }
        try:
            return self._template.render(**context)
        except (TemplateError, TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise InvalidInput(
                f"the model's chat template does not take these messages: {error}", field="messages"
            ) from error


def as_templates_expect(message: Message) -> dict[str, Any]:
    """Return the message in the form that templates are written for.

    OpenAI sends call arguments as JSON text and `content` null beside calls; templates want an object and
    a string. `developer` is OpenAI's newer name of `system`.
    """
    plain = dict(message)
    if plain.get("role") == "developer":
        plain["role"] = "system"
    content = plain.get("content")
    if content is None:
        plain["content"] = ""
    elif isinstance(content, list):
        plain["content"] = "".join(part["text"] for part in content if part.get("type") == "text")
    if plain.get("tool_calls"):
        plain["tool_calls"] = [_call(call) for call in plain["tool_calls"]]
    return plain


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            # no NaN, no 1e999: what they would be rendered as is no JSON
            parsed = json.loads(arguments, parse_constant=_refuse, parse_float=_finite)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, dict):
            function["arguments"] = parsed
    return {**call, "function": function}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large for a number")
    return number
