"""The hinted teacher of a chat reads what the model read, token for token, and the hint;
an archive says the same."""

from dataclasses import replace
from typing import Any

import pytest

from apps.conversations.canonical import canonical_message, chain
from apps.conversations.models import Turn
from apps.conversations.told import Told
from apps.engines.chat import chat_format
from apps.governance.export.privacy import Privacy
from apps.governance.export.trl import _FIELDS, base_of
from apps.learning.models import Sample
from apps.learning.samples import make_sample
from kernel.tenancy import tenant_scope
from tests.apps.conversations.talk import Said, assistant, say, user
from tests.apps.learning.ledger import settle
from tests.chat_model import END, chatml, ids_of
from tests.tenants import Somebody

HINT = "Answer in one short sentence."
REMINDED = Told('Preferences:\n- "Be kind."', ({"id": "1", "revision": 1},), 9, "", "Be kind.")
LISTED = replace(REMINDED, reminder="")
SYSTEM = {"role": "system", "content": "You sell lamps."}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "lamp", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "content": "It is on.", "tool_call_id": "c1"}


def taught(turn: Turn) -> list[int]:
    """What the teacher of a turn reads."""
    settle(turn, hints=(HINT,))
    with tenant_scope(turn.tenant_id):
        sample = make_sample(turn_id=turn.id)
    assert sample is not None
    (hint,) = sample.hints
    assert hint["text"] == HINT
    return list(hint["prompt_ids"])


def with_the_hint_after(prompt: list[int], words: str) -> list[int]:
    """A prompt with the hint behind the last place where a message ends with these words."""
    end = [*ids_of(words), END]
    at = max(i for i in range(len(prompt)) if prompt[i : i + len(end)] == end) + len(end) - 1
    return [*prompt[:at], *ids_of(f"\n\n{HINT}"), *prompt[at:]]


def exported(turn: Turn) -> list[dict[str, Any]]:
    """The prompt of a turn's training row, as messages."""
    with tenant_scope(turn.tenant_id):
        row = Sample.objects.filter(turn=turn).values(*_FIELDS).get()
        base = base_of(row, Privacy())
    assert base is not None
    return list(base["prompt"])


def chat_of(somebody: Somebody, told: Told | None, *questions: str, **fields: Any) -> list[Turn]:
    """A chat whose requests come one after the other, each told the same."""
    messages: list[Said] = [SYSTEM]
    turns = []
    for number, question in enumerate(questions):
        messages.append(user(question))
        turns.append(say(somebody, *messages, reply=f"Reply {number}.", told=told, body=question, **fields))
        messages.append(assistant(f"Reply {number}."))
    return turns


@pytest.mark.parametrize("told", [REMINDED, LISTED, None], ids=["reminded", "listed", "untold"])
def test_the_teacher_of_a_chat_reads_what_the_model_read(somebody: Somebody, told: Told | None) -> None:
    turns = chat_of(somebody, told, "What is rain?", "And snow?", "And hail?")
    assert [turn.prompt_source for turn in turns] == ["first", "extended", "extended"]
    behind = "\n\nBe kind." if told is REMINDED else ""
    for turn, question in zip(turns, ("What is rain?", "And snow?", "And hail?"), strict=True):
        assert taught(turn) == with_the_hint_after(turn.prompt_ids, f"{question}{behind}")
        # the replies of this model are the tokens of their text:
        # so the archive's messages render to the same ids
        assert chat_format().render(exported(turn)) == turn.prompt_ids
    assert turns[2].prompt_ids.count(END) == 6
    assert bytes(turns[2].prompt_ids).count(bytes(ids_of("Be kind."))) == (
        3 if told is REMINDED else bool(told)
    )


def test_replies_are_read_in_the_tokens_that_were_written(somebody: Somebody) -> None:
    """The client keeps a reply without the spaces around it: rendered anew, it would be another prompt."""
    first = say(somebody, user("What is rain?"), reply=" Water. ", told=REMINDED, body="1")
    asked = [user("What is rain?"), assistant("Water."), user("And snow?")]
    second = say(somebody, *asked, told=REMINDED, body="2")
    assert second.prompt_ids[: len(first.prompt_ids) + 8] == [*first.prompt_ids, *ids_of(" Water. ")]
    assert taught(second) == with_the_hint_after(second.prompt_ids, "And snow?\n\nBe kind.")


def test_the_hint_stands_behind_the_persons_words_though_a_tool_spoke_last(somebody: Somebody) -> None:
    asked = [user("What is rain?"), assistant("Water."), user("Is the lamp on?")]
    say(somebody, user("What is rain?"), reply="Water.", told=REMINDED, body="1")
    calling = say(somebody, *asked, reply="", told=REMINDED, body="2")
    with tenant_scope(somebody.tenant.id):
        # as a reply that calls a tool is stored
        reply_hash = chain([canonical_message(one) for one in (*asked, CALL)])[-1]
        Turn.objects.filter(pk=calling.pk).update(reply=CALL, reply_hash=reply_hash)
    last = say(somebody, *asked, CALL, RESULT, reply="Yes.", told=REMINDED, body="3")
    assert (last.prompt_source, last.parent_id) == ("extended", calling.pk)
    assert taught(last) == with_the_hint_after(last.prompt_ids, "Is the lamp on?\n\nBe kind.")
    read = exported(last)
    assert [one["content"] for one in read if one["role"] == "user"] == [
        "What is rain?\n\nBe kind.",
        "Is the lamp on?\n\nBe kind.",
    ]
    assert [one["role"] for one in read] == ["user", "assistant", "user", "assistant", "tool"]


def test_what_was_rendered_anew_has_one_reminder(somebody: Somebody) -> None:
    """Something else was wanted by then: the whole chat is rendered,
    and the last question alone has the reminder."""
    say(somebody, user("What is rain?"), reply="Water.", told=REMINDED, body="1")
    other = replace(REMINDED, text="Preferences:\n- x", reminder="Be brief.")
    asked = [user("What is rain?"), assistant("Water."), user("And snow?")]
    second = say(somebody, *asked, reply="Ice.", told=other, body="2")
    assert second.prompt_source == "rendered"
    third = say(somebody, *asked, assistant("Ice."), user("And hail?"), told=other, body="3")
    assert third.prompt_source == "extended"
    assert third.prompt_ids[: len(second.prompt_ids)] == chatml(
        ("user", "What is rain?"), ("assistant", "Water."), ("user", "And snow?\n\nBe brief.")
    )
    for turn, question in ((second, "And snow?"), (third, "And hail?")):
        assert taught(turn) == with_the_hint_after(turn.prompt_ids, f"{question}\n\nBe brief.")
        assert chat_format().render(exported(turn)) == turn.prompt_ids
