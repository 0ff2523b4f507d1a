"""The prompt's exact tokens: what was read and written before, plus what was added."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from apps.conversations.canonical import Message
from apps.conversations.models import PromptSource
from apps.conversations.stitching import Parent, Place
from apps.engines.chat import CannotExtend, added_messages, chat_format
from kernel.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Prompt:
    """Ids to send to the engine, and how they came about."""

    ids: list[int]
    source: PromptSource
    reason: str = ""


def build_prompt(
    *,
    place: Place,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None,
    template_kwargs: Mapping[str, Any],
) -> Prompt:
    """Extend the parent's stored ids, or render the chat anew and say why.

    Raises InvalidInput where the template does not take the messages or no token of the context is
    left for a reply (`context_length_exceeded`).
    """
    chat = chat_format()
    parent = place.parent
    if parent is None:
        prompt = Prompt(chat.render(messages, tools, template_kwargs), PromptSource.FIRST)
    else:
        try:
            _check_extends(place, parent, messages, tools, template_kwargs)
            ids = chat.extend(parent.ids, parent.ended, place.added, tools, template_kwargs)
            prompt = Prompt(ids, PromptSource.EXTENDED)
        except CannotExtend as why:
            ids = chat.render(messages, tools, template_kwargs)
            prompt = Prompt(ids, PromptSource.RENDERED, why.reason[:200])
    chat.check_ids(prompt.ids)
    if len(prompt.ids) >= settings.CONTEXT_LENGTH:
        raise InvalidInput(
            f"The maximum context length is {settings.CONTEXT_LENGTH} tokens; "
            f"these messages are {len(prompt.ids)} tokens and leave no room for a reply.",
            field="messages",
            code="context_length_exceeded",
        )
    return prompt


def _check_extends(
    place: Place,
    parent: Parent,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None,
    template_kwargs: Mapping[str, Any],
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
