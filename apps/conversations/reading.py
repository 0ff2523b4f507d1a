"""What the prompt of a stored turn read: message by message, and in tokens as it would read with a hint.

A prompt that was extended is its parent's exact tokens and what was added. So every question in a run of such
prompts stands as it was asked at its time, with the reminder of its own request behind it: rendered anew, the
chat would have one behind its last question alone, and replies in other tokens than the model wrote.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from django.db import connection

from apps.conversations.canonical import Message
from apps.conversations.models import PromptSource, Turn
from apps.conversations.told import Told, with_reminder, with_told
from apps.engines.chat import chat_format, with_hint

_FIELDS = (
    "id",
    "parent_id",
    "messages",
    "memory",
    "prompt_source",
    "prompt_ids",
    "output_ids",
    "finish_reason",
)

_RUN = """
    WITH RECURSIVE run AS (
        SELECT parent_id, prompt_source, memory, jsonb_array_length(messages) AS messages, 1 AS back
        FROM conversations_turn WHERE id = %s
        UNION ALL
        SELECT turn.parent_id, turn.prompt_source, turn.memory, jsonb_array_length(turn.messages), run.back + 1
        FROM run JOIN conversations_turn AS turn ON turn.id = run.parent_id
        WHERE run.prompt_source = %s
    )
    SELECT memory->>'text', memory->>'default_system', memory->>'reminder', messages FROM run ORDER BY back DESC
"""


@dataclass(frozen=True, slots=True)
class _Added:
    """What a prompt added to its parent's tokens, as it read it."""

    reply: Sequence[int]
    """What the parent wrote."""
    ended: bool
    """Whether the model ended it itself."""
    messages: Sequence[Message]
    """As the prompt read them."""

    @classmethod
    def by(cls, turn: Turn, parent: Turn) -> Self:
        """Return what the prompt of a turn added."""
        own = turn.messages[len(parent.messages) + 1 :]  # its parent's messages and reply come first
        ended = parent.finish_reason == "stop"
        return cls(parent.output_ids, ended, with_reminder(own, Told.of(turn.memory)))

    def after(self, ids: Sequence[int], tools: Any, template_kwargs: Any) -> list[int]:
        """Return the prompt where its parent's read `ids`."""
        return chat_format().extend(
            [*ids, *self.reply], self.ended, self.messages, tools=tools, template_kwargs=template_kwargs
        )


def hinted_prompt(turn: Turn, hint: str) -> list[int]:
    """Return a turn's prompt as it would read had the person's last words ended with a
    hint; nothing else differs.

    Raises InvalidInput where no words are the person's, CannotExtend where the model's template takes the
    tokens no more.
    """
    later: list[_Added] = []  # newest first: what followed the person's last words
    tools, template_kwargs = turn.tools, turn.template_kwargs  # whatever changes them is rendered anew
    while (parent := _extended(turn)) is not None:
        added = _Added.by(turn, parent)
        if any(message["role"] == "user" for message in added.messages):
            ids = replace(added, messages=with_hint(added.messages, hint)).after(
                parent.prompt_ids, tools, template_kwargs
            )
            break
        later.append(added)
        turn = parent
    else:
        ids = chat_format().hinted(
            with_told(turn.messages, Told.of(turn.memory)), hint, tools, template_kwargs
        )
    for added in reversed(later):
        ids = added.after(ids, tools, template_kwargs)
    return ids


def as_read(
    messages: Sequence[Message], told: Told | None, *, turn_id: uuid.UUID, source: str
) -> list[Message]:
    """Return the messages of a stored turn as its prompt read them.

    One query, where it was told something and extended.
    """
    if told is None or source != PromptSource.EXTENDED:
        return with_told(messages, told)
    with connection.cursor() as cursor:
        cursor.execute(_RUN, [turn_id, PromptSource.EXTENDED])
        run = cursor.fetchall()
    read: list[Message] = []
    begin = 0
    for text, default_system, reminder, end in run:
        then = Told(text or "", default_system=default_system or "", reminder=reminder or "")
        if not read:
            read = with_told(messages[:end], then)
        else:
            # a reply, which nobody is reminded behind, and what was added to it
            read += [messages[begin], *with_reminder(messages[begin + 1 : end], then)]
        begin = end
    return read


def _extended(turn: Turn) -> Turn | None:
    """Return the turn whose tokens a prompt went on from; None where it was rendered as a whole."""
    if turn.prompt_source != PromptSource.EXTENDED or turn.parent_id is None:
        return None
    return Turn.objects.only(*_FIELDS).get(pk=turn.parent_id)
