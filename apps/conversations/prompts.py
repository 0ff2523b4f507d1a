"""The prompt's exact tokens: what was read and written before, plus what was added."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from apps.conversations.canonical import Message
from apps.conversations.models import PromptSource
from apps.conversations.stitching import Parent, Place
from apps.conversations.told import Told, with_reminder, with_told
from apps.engines.chat import CannotExtend, added_messages, chat_format
from kernel.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Prompt:
    """Ids to send to the engine, and how they came about."""

    ids: list[int]
    source: PromptSource
    reason: str = ""
    told: Told | None = None
    """What the ids hold beside the client's messages."""


def build_prompt(
    *,
    place: Place,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None,
    template_kwargs: Mapping[str, Any],
    told: Told | None = None,
) -> Prompt:
    """Extend the parent's stored ids, or render the chat anew and say why.

    What is `told` comes after the operator's system text; it is left out, with the reason, where the prompt
    is only valid without it. Raises InvalidInput where the template does not take the messages or no token of
    the context is left for a reply (`context_length_exceeded`).
    """
    if told is not None:
        try:
            return _built(place, messages, tools, template_kwargs, told)
        except InvalidInput as error:
            # the client's own request decides what is an error
            plain = _built(place, messages, tools, template_kwargs, None)
            return replace(plain, reason=f"memory left out: {error.code}"[:200])
    return _built(place, messages, tools, template_kwargs, None)


def _built(
    place: Place,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None,
    template_kwargs: Mapping[str, Any],
    told: Told | None,
) -> Prompt:
    chat = chat_format()
    parent = place.parent
    text = told.text if told is not None else ""
    if parent is None:
        prompt = Prompt(
            chat.render(with_told(messages, told), tools, template_kwargs), PromptSource.FIRST, told=told
        )
    else:
        try:
            _check_extends(place, parent, messages, tools, template_kwargs, text)
            ids = chat.extend(
                parent.ids, parent.ended, with_reminder(place.added, told), tools, template_kwargs
            )
            prompt = Prompt(ids, PromptSource.EXTENDED, told=told)
        except CannotExtend as why:
            ids = chat.render(with_told(messages, told), tools, template_kwargs)
            prompt = Prompt(ids, PromptSource.RENDERED, why.reason[:200], told)
    chat.check_ids(prompt.ids)
    if len(prompt.ids) >= settings.CONTEXT_LENGTH:
        raise InvalidInput(
            f"The maximum context length is {settings.CONTEXT_LENGTH} tokens; "
            f"these messages are {len(prompt.ids)} tokens and leave no room for a reply.",
            field="messages",
            code="context_length_exceeded",
        )
    return prompt


def _check_extends(  # noqa: PLR0917
    place: Place,
    parent: Parent,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None,
    template_kwargs: Mapping[str, Any],
    told: str,
) -> None:
    """Raise CannotExtend where the parent's tokens say something else than the request."""
    if place.changed is not None:
        before, reply = place.changed
        added_messages(before=before, reply=reply, now=messages)
        raise CannotExtend("edited history")
    if (parent.tools or None) != (list(tools) if tools else None):
        raise CannotExtend("tools changed")
    if parent.template_kwargs != template_kwargs:
        raise CannotExtend("template arguments changed")
    if parent.told != told:
        raise CannotExtend("memory changed")
