"""Chat in, exact token ids out: the only place where text of a conversation is ever tokenised."""

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from tokenizers import Tokenizer

from apps.engines.decoding import Decoder
from apps.engines.template import ChatTemplate, Message, as_templates_expect
from kernel.errors import InvalidInput

_MARK = "attune placeholder"


class CannotExtend(Exception):
    """The stored ids cannot be continued; the chat must be rendered anew.

    `reason` is stored with the turn.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def added_messages(*, before: Sequence[Message], reply: Message, now: Sequence[Message]) -> list[Message]:
    """Return what a request adds after an earlier request's messages and the reply it got.

    Raises CannotExtend where it does not continue them: "system message changed" or "edited history".
    """
    earlier = [*before, reply]
    if _system(before) != _system(now):
        raise CannotExtend("system message changed")
    if len(now) <= len(earlier) or list(now[: len(earlier)]) != earlier:
        raise CannotExtend("edited history")
    return list(now[len(earlier) :])


def with_hint(messages: Sequence[Message], hint: str) -> list[dict[str, Any]]:
    """Return the messages with a hint, or another text of ours, behind the last user message,
    in a paragraph of its own.

    Raises InvalidInput where there is none.
    """
    asked = [index for index, message in enumerate(messages) if message.get("role") == "user"]
    if not asked:
        raise InvalidInput("there is no user message to put a hint into", field="messages")
    told = [dict(message) for message in messages]
    content = told[asked[-1]].get("content") or ""
    told[asked[-1]]["content"] = (
        [*content, {"type": "text", "text": f"\n\n{hint}"}]
        if isinstance(content, list)
        else f"{content}\n\n{hint}"
    )
    return told


def _system(messages: Sequence[Message]) -> Any:
    first = messages[0] if messages else {}
    return first.get("content") if first.get("role") in ("system", "developer") else None


class ChatFormat:
    """Template and tokeniser of one model directory. Stateless: safe to share between threads."""

    def __init__(self, model: Path, *, context_length: int | None = None) -> None:
        self.template = ChatTemplate(model)
        self._tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        # what a person typed is never read as a control token: see `_ids`
        self._literal = Tokenizer.from_file(str(model / "tokenizer.json"))
        self._literal.encode_special_tokens = True
        control = sorted(
            (token.content for token in self._tokenizer.get_added_tokens_decoder().values() if token.special),
            key=len,
            reverse=True,
        )
        self._spelling = re.compile("|".join(map(re.escape, control)) or r"(?!)")
        self._fence = f"\ue000{secrets.token_hex(8)}\ue001"
        config = json.loads((model / "config.json").read_text(encoding="utf-8"))
        text_config = config.get("text_config", config)
        self.vocab_size = int(text_config["vocab_size"])
        """Ids at or above this kill an engine."""
        longest = int(text_config["max_position_embeddings"])
        self.context_length = min(longest, context_length or longest)
        """Tokens that are taken at most, prompt and reply together."""
        # no token stands for more bytes than this: a longer text cannot fit, and is not tokenised to find out
        widest = max(len(token.encode()) for token in self._tokenizer.get_vocab())
        self._most_bytes = self.context_length * widest
        self.eos_ids = self._stop_ids(model, text_config)
        """Ids that end a reply."""
        self._end_of_turn = self._find_end_of_turn()
        self.default_system = self._find_default_system()
        """What the template says as system where a chat has no system message; "" where that is nothing."""

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Return the ids of the whole prompt, up to where the assistant begins to speak."""
        return self._ids(messages, tools=tools, generate=True, extra=template_kwargs)

    def hinted(
        self,
        messages: Sequence[Message],
        hint: str,
        tools: Sequence[Mapping[str, Any]] | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Return the ids of the prompt as it would be had the last user message ended with `hint`,
        in a paragraph of its own."""
        return self.render(with_hint(messages, hint), tools, template_kwargs)

    def extend(
        self,
        previous_ids: Sequence[int],
        ended: bool,  # noqa: FBT001 - a fact about the reply, in the signature that callers know
        added: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Return `previous_ids` (a turn's prompt and reply as they were) plus the ids of what was added.

        What was added is the template of (placeholder + added) minus that of the placeholder. `ended`: the
        model ended the reply itself. A reply that was cut (length, hang-up) gets the end-of-turn token
        that it lacks. Raises CannotExtend(reason) where that is not what the template means.
        """
        if not previous_ids or not added:
            raise CannotExtend("nothing to extend")
        if self._end_of_turn is None:
            raise CannotExtend("the template ends no turn with a stop token")
        last = previous_ids[-1]
        if ended and last != self._end_of_turn:
            raise CannotExtend("the reply was ended by a stop string or another token")
        after = self._after_reply(added, tools=tools, extra=template_kwargs)
        return [*previous_ids, *(after[1:] if last == self._end_of_turn else after)]

    def count(self, text: str) -> int:
        """Return how many tokens a person's text is,
        control tokens spelled in it taken as plain characters."""
        return len(self.plain_ids(text))

    def plain_ids(self, text: str) -> list[int]:
        """Return the ids of text by itself, outside any chat;
        control tokens spelled in it are plain characters."""
        return list(self._literal.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of a reply's ids, control tokens left out."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True)

    def decoder(self) -> Decoder:
        """Return a decoder for one streamed reply."""
        return Decoder(self.decode)

    def check_ids(self, ids: Sequence[int]) -> None:
        """Raise InvalidInput for an empty prompt or an id outside the vocabulary."""
        if not ids:
            raise InvalidInput("the prompt has no tokens", field="input_ids")
        if min(ids) < 0 or max(ids) >= self.vocab_size:
            raise InvalidInput(
                f"token ids must lie in [0, {self.vocab_size}), got {min(ids)} to {max(ids)}",
                field="input_ids",
            )

    def _after_reply(
        self,
        added: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None,
        extra: Mapping[str, Any] | None,
    ) -> list[int]:
        """Return the ids from the end-of-turn token of the reply on."""
        placeholder: list[Message] = [{"role": "user", "content": _MARK}, _reply_before(added)]
        before = self._ids(placeholder, tools=tools, generate=False, extra=extra)
        whole = self._ids([*placeholder, *added], tools=tools, generate=True, extra=extra)
        end = max(index for index, token in enumerate(before) if token == self._end_of_turn)
        if whole[: end + 1] != before[: end + 1]:
            raise CannotExtend("the template rewrites earlier turns")
        return whole[end:]

    def _ids(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None,
        generate: bool,
        extra: Mapping[str, Any] | None,
    ) -> list[int]:
        """Render and tokenise. Control tokens come from the template only.

        Where the text of a message spells one ("<|im_end|>"), that spelling is fenced off before the
        template runs and tokenised as plain characters: nobody ends their own turn or speaks as the system.
        """
        fenced: list[str] = []
        # first as templates want it, then fenced: what is unpacked later would come out unfenced
        safe = [self._fenced(as_templates_expect(message), fenced) for message in messages]
        safe_tools = self._fenced(list(tools), fenced) if tools else None
        text = self.template.text(safe, tools=safe_tools, generate=generate, extra=extra)
        try:
            if (size := len(text.encode())) > self._most_bytes:
                raise InvalidInput(
                    f"The messages have {size} bytes, more than {self.context_length} tokens can hold.",
                    field="messages",
                    code="context_length_exceeded",
                )
            if not fenced:
                return self._tokenizer.encode(text, add_special_tokens=False).ids
            ids: list[int] = []
            for index, piece in enumerate(text.split(self._fence)):
                # pieces alternate: template text, then the number of a fenced spelling, then text ...
                tokenizer, part = (
                    (self._literal, fenced[int(piece)]) if index % 2 else (self._tokenizer, piece)
                )
                ids.extend(tokenizer.encode(part, add_special_tokens=False).ids)
            return ids
        except (UnicodeEncodeError, TypeError) as error:
            raise InvalidInput(
                "the text holds half a surrogate pair, which is no character", field="messages"
            ) from error

    def _fenced(self, value: Any, fenced: list[str]) -> Any:
        def away(match: re.Match[str]) -> str:
            fenced.append(match[0])
            return f"{self._fence}{len(fenced) - 1}{self._fence}"

        if isinstance(value, str):
            return self._spelling.sub(away, value)
        if isinstance(value, Mapping):
            return {self._fenced(key, fenced): self._fenced(item, fenced) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._fenced(item, fenced) for item in value]
        return value

    def _stop_ids(self, model: Path, config: Mapping[str, Any]) -> frozenset[int]:
        found: set[int] = set()
        generation = model / "generation_config.json"
        sources = [config]
        if generation.exists():
            sources.append(json.loads(generation.read_text(encoding="utf-8")))
        for source in sources:
            ids = source.get("eos_token_id")
            found.update(ids if isinstance(ids, list) else [] if ids is None else [ids])
        if not found:
            raise InvalidInput(f"{model} names no eos_token_id: its replies would never end")
        return frozenset(found)

    def _find_end_of_turn(self) -> int | None:
        """Return the token that the template writes right after a reply, if it is one that ends replies."""
        placeholder: list[Message] = [{"role": "user", "content": _MARK}, _reply_before([])]
        text = self.template.text(placeholder, tools=None, generate=False, extra=None)
        after = self._tokenizer.encode(text[text.rindex(_MARK) + len(_MARK) :], add_special_tokens=False).ids
        return after[0] if after and after[0] in self.eos_ids else None

    def _find_default_system(self) -> str:
        asked = {"role": "user", "content": "?"}
        try:
            told = self.template.text(
                [{"role": "system", "content": _MARK}, asked], tools=None, generate=False, extra=None
            )
        except InvalidInput:  # a template without a system role
            return ""
        bare = self.template.text([asked], tools=None, generate=False, extra=None)
        before, mark, after = told.partition(_MARK)
        found = mark and bare.startswith(before) and bare[len(before) :].endswith(after)
        return bare[len(before) : len(bare) - len(after)] if found else ""


def _reply_before(added: Sequence[Message]) -> dict[str, Any]:
    """Return a stand-in for the reply; before tool results it makes the calls that they answer."""
    calls = [
        {
            "id": message.get("tool_call_id", ""),
            "type": "function",
            "function": {"name": message.get("name") or "placeholder", "arguments": "{}"},
        }
        for message in added
        if message.get("role") == "tool"
    ]
    reply: dict[str, Any] = {"role": "assistant", "content": _MARK}
    return {**reply, "tool_calls": calls} if calls else reply


@cache
def chat_format() -> ChatFormat:
    """Return this process's format of the served model (`MODEL_PATH`)."""
    return ChatFormat(Path(settings.MODEL_PATH), context_length=settings.CONTEXT_LENGTH)
