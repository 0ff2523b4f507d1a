"""Where a request belongs, and what it means for the turn before it."""

import uuid

import pytest
from pytest_django import Settings

from apps.conversations.models import PromptSource, TurnKind
from apps.conversations.services import Admitted, abort_turn, admit_turn, complete_turn, fail_turn
from kernel.errors import InvalidInput
from kernel.models import OutboxMessage
from kernel.tenancy import system_scope
from tests.apps.conversations.talk import (
    JUDGE,
    admit,
    asked,
    assistant,
    outbox,
    say,
    sessions,
    turn,
    user,
    written,
)
from tests.chat_model import END, START, chatml, ids_of
from tests.tenants import Somebody, add_version

pytestmark = pytest.mark.django_db
NEWLINE = ids_of("\n")


def test_the_first_request_begins_a_session_and_waits_pending(somebody: Somebody) -> None:
    admitted = admit(somebody, user("hi"))

    stored = turn(somebody, admitted)
    assert (stored.state, stored.kind, stored.side, stored.parent_id) == ("pending", "live", False, None)
    assert stored.messages == [{"role": "user", "content": "hi"}]
    assert stored.prompt_ids == admitted.prompt.ids == chatml(("user", "hi"))
    assert (stored.prompt_source, stored.prompt_reason) == ("first", "")
    assert stored.session.user_id == somebody.user.id
    assert admitted.session == str(stored.session_id)
    assert outbox(JUDGE) == []


def test_a_request_that_repeats_the_reply_continues_with_the_exact_tokens(somebody: Somebody) -> None:
    first = say(somebody, user("hi"), reply="Hello")
    second = admit(somebody, user("hi"), assistant("Hello"), user("more"))

    stored = turn(somebody, second)
    assert (stored.session_id, stored.parent_id) == (first.session_id, first.id)
    assert stored.prompt_source == PromptSource.EXTENDED
    assert stored.prompt_ids == [
        *first.prompt_ids,
        *first.output_ids,
        *NEWLINE,
        *chatml(("user", "more")),
    ]
    parent = turn(somebody, first)
    assert parent.next_state == [{"role": "user", "content": "more"}]
    assert parent.next_turn_id == stored.id
    assert outbox(JUDGE) == [str(first.id)]
    with system_scope("look"):
        row = OutboxMessage.objects.get()
    assert (row.queue, row.tenant_id, row.dedupe_key) == ("judge", somebody.tenant.id, f"judge:{first.id}")
    assert row.kwargs == {"turn_id": str(first.id), "tenant_id": str(somebody.tenant.id)}


def test_exact_ids_are_kept_where_the_text_would_tokenise_otherwise(somebody: Somebody) -> None:
    admitted = admit(somebody, user("hi"))
    generation = written("Hello")
    generation.output_ids = [40_000, 40_001, END]
    generation.output_logprobs = [-1.0, -1.0, -1.0]
    complete_turn(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id, generation=generation)

    second = admit(somebody, user("hi"), assistant("Hello"), user("more"))

    start = len(admitted.prompt.ids)
    assert second.prompt.ids[start : start + 3] == [40_000, 40_001, END]


def test_a_reply_that_was_cut_gets_the_end_of_turn_it_lacks(somebody: Somebody) -> None:
    admitted = admit(somebody, user("hi"))
    generation = written("Hel", finish_reason="length")
    generation.output_ids, generation.output_logprobs = ids_of("Hel"), [-0.5] * 3
    complete_turn(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id, generation=generation)

    second = admit(somebody, user("hi"), assistant("Hel"), user("go on"))

    assert second.prompt.ids == [
        *admitted.prompt.ids,
        *ids_of("Hel"),
        END,
        *NEWLINE,
        *chatml(("user", "go on")),
    ]


def test_everything_that_was_added_is_the_next_state(somebody: Somebody) -> None:
    calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in (1, 2)
    ]
    admitted = admit(somebody, user("add"))
    generation = written("")
    generation.tool_calls = calls
    complete_turn(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id, generation=generation)
    results = [{"role": "tool", "content": str(i), "tool_call_id": f"c{i}"} for i in (1, 2)]

    admit(somebody, user("add"), {"role": "assistant", "tool_calls": calls}, *results, user("and now?"))

    assert turn(somebody, admitted).next_state == [*results, {"role": "user", "content": "and now?"}]


def test_the_same_first_message_twice_is_two_sessions(somebody: Somebody) -> None:
    one, other = say(somebody, user("hi")), say(somebody, user("hi"))

    assert one.session_id != other.session_id
    assert turn(somebody, one).next_state is None


def test_twins_are_continued_one_by_one(somebody: Somebody) -> None:
    one, other = say(somebody, user("hi"), reply="Hello"), say(somebody, user("hi"), reply="Hello")

    first = say(somebody, user("hi"), assistant("Hello"), user("a"))
    second = say(somebody, user("hi"), assistant("Hello"), user("b"))

    assert {first.parent_id, second.parent_id} == {one.id, other.id}
    assert {first.session_id, second.session_id} == {one.session_id, other.session_id}
    assert sorted(outbox(JUDGE)) == sorted([str(one.id), str(other.id)])


def test_a_second_continuation_is_a_branch_and_changes_no_next_state(somebody: Somebody) -> None:
    root = say(somebody, user("hi"), reply="Hello")
    kept = say(somebody, user("hi"), assistant("Hello"), user("a"))
    branch = say(somebody, user("hi"), assistant("Hello"), user("b"))

    assert (kept.parent_id, branch.parent_id) == (root.id, root.id)
    assert branch.session_id == root.session_id
    parent = turn(somebody, root)
    assert parent.next_state == [{"role": "user", "content": "a"}]
    assert parent.next_turn_id == kept.id
    assert outbox(JUDGE) == [str(root.id)]


def test_a_longer_history_finds_its_last_turn(somebody: Somebody) -> None:
    say(somebody, user("1"), reply="one")
    second = say(somebody, user("1"), assistant("one"), user("2"), reply="two")
    third = say(somebody, user("1"), assistant("one"), user("2"), assistant("two"), user("3"))

    assert third.parent_id == second.id
    assert len(sessions(somebody)) == 1


def test_an_edited_reply_branches_where_history_still_holds(somebody: Somebody) -> None:
    first = say(somebody, user("1"), reply="one")
    second = say(somebody, user("1"), assistant("one"), user("2"), reply="two")

    edited = say(somebody, user("1"), assistant("one"), user("2"), assistant("TWO"), user("3"))

    assert edited.parent_id == first.id
    assert edited.prompt_source == PromptSource.EXTENDED
    assert edited.session_id == first.session_id
    # what was said next is about the reply that was changed
    answered = turn(somebody, second)
    assert (answered.next_state, answered.reply_edited) == ([user("3")], True)
    assert answered.next_turn_id == edited.id
    assert turn(somebody, first).next_turn_id == second.id
    assert turn(somebody, first).reply_edited is False


def test_a_reply_that_was_edited_first_of_all_is_known_by_the_session_alone(somebody: Somebody) -> None:
    first = say(somebody, user("1"), reply="one", session="s-1")
    edited = say(somebody, user("1"), assistant("ONE"), user("2"), session="s-1")
    unnamed = say(somebody, user("1"), assistant("uno"), user("2"))

    answered = turn(somebody, first)
    assert (answered.next_state, answered.reply_edited) == ([user("2")], True)
    assert (answered.next_turn_id, edited.parent_id) == (edited.id, None)
    # nobody says that this one is about it: another model may have written that
    assert unnamed.session_id != first.session_id


def test_a_second_edit_changes_nothing_of_what_was_said_next(somebody: Somebody) -> None:
    first = say(somebody, user("1"), reply="one", session="s-1")
    say(somebody, user("1"), assistant("one"), user("2"), session="s-1")
    say(somebody, user("1"), assistant("ONE"), user("3"), session="s-1")

    answered = turn(somebody, first)
    assert (answered.next_state, answered.reply_edited) == ([user("2")], False)


def test_another_system_message_starts_another_conversation_by_content(somebody: Somebody) -> None:
    say(somebody, {"role": "system", "content": "be kind"}, user("hi"), reply="Hello")

    other = admit(
        somebody, {"role": "system", "content": "be brief"}, user("hi"), assistant("Hello"), user("x")
    )

    assert turn(somebody, other).parent_id is None
    assert len(sessions(somebody)) == 2


def test_changed_tools_render_anew_and_say_so(somebody: Somebody) -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    say(somebody, user("hi"), reply="Hello")

    second = turn(somebody, admit(somebody, user("hi"), assistant("Hello"), user("x"), tools=[tool]))

    assert (second.prompt_source, second.prompt_reason) == ("rendered", "tools changed")


def test_a_side_turn_is_stored_and_speaks_for_nobody(somebody: Somebody) -> None:
    first = say(somebody, user("hi"), reply="Hello")
    side = say(somebody, user("hi"), assistant("Hello"), user("summarise"), reply="sum", side=True)

    assert side.side is True
    assert side.parent_id == first.id
    assert turn(somebody, first).next_state is None
    assert outbox(JUDGE) == []

    say(somebody, user("hi"), assistant("Hello"), user("real"))
    say(somebody, user("hi"), assistant("Hello"), user("summarise"), assistant("sum"), user("again"))
    assert turn(somebody, first).next_state == [{"role": "user", "content": "real"}]
    assert outbox(JUDGE) == [str(first.id)]  # never the side turn


def test_an_evaluation_is_apart_from_what_is_live(somebody: Somebody) -> None:
    live = say(somebody, user("hi"), reply="Hello")

    tried = say(somebody, user("hi"), assistant("Hello"), user("x"), kind=TurnKind.EVALUATION)

    assert tried.parent_id is None
    assert tried.session.kind == "evaluation"
    assert turn(somebody, live).next_state is None
    again = say(
        somebody,
        user("hi"),
        assistant("Hello"),
        user("x"),
        assistant("ok"),
        user("y"),
        kind=TurnKind.EVALUATION,
    )
    assert again.parent_id == tried.id
    assert outbox(JUDGE) == []


def test_a_partial_reply_can_be_continued_but_is_not_judged(somebody: Somebody) -> None:
    admitted = admit(somebody, user("hi"))
    partial = written("Hel", finish_reason="")
    partial.output_ids = ids_of("Hel")
    abort_turn(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id, generation=partial)

    second = admit(somebody, user("hi"), assistant("Hel"), user("go on"))

    assert turn(somebody, second).parent_id == admitted.turn_id
    assert turn(somebody, admitted).next_state == [{"role": "user", "content": "go on"}]
    assert second.prompt.ids[len(admitted.prompt.ids) :][:4] == [*ids_of("Hel"), END]
    assert outbox(JUDGE) == []


def test_a_failed_reply_is_continued_by_nobody(somebody: Somebody) -> None:
    admitted = admit(somebody, user("hi"))
    fail_turn(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id, error="x", generation=written("Hel"))

    assert turn(somebody, admit(somebody, user("hi"), assistant("Hel"), user("x"))).parent_id is None


def test_a_prompt_past_the_context_writes_nothing(somebody: Somebody, settings: Settings) -> None:
    first = say(somebody, user("hi"), reply="Hello")
    settings.CONTEXT_LENGTH = 60

    with pytest.raises(InvalidInput) as refusal:
        admit(somebody, user("hi"), assistant("Hello"), user("x" * 60), session="new")

    assert (refusal.value.code, refusal.value.field) == ("context_length_exceeded", "messages")
    assert len(somebody.turns()) == 1
    assert len(sessions(somebody)) == 1
    assert turn(somebody, first).next_state is None


def test_what_cannot_be_stored_is_cleaned_once_for_ledger_and_engine(somebody: Somebody) -> None:
    admitted = admit(
        somebody,
        user("a\ud800b\x00c"),
        tools=[{"type": "function", "function": {"name": "f", "description": "\udfff"}}],
    )

    stored = turn(somebody, admitted)
    assert stored.messages == [{"role": "user", "content": "a\ufffdb\ufffdc"}]
    assert stored.tools == [{"type": "function", "function": {"name": "f", "description": "\ufffd"}}]


def test_the_pinned_version_and_the_engine_are_on_the_turn(somebody: Somebody) -> None:
    version, engine = add_version(somebody.policy), uuid.uuid4()

    outcome = admit_turn(
        caller=somebody.caller,
        policy_id=somebody.policy.id,
        version_id=version.id,
        request=asked(user("hi")),
        engine_id=engine,
    )

    assert isinstance(outcome, Admitted)
    stored = turn(somebody, outcome)
    assert (stored.version_id, stored.engine_id, stored.key_id) == (version.id, engine, somebody.key.id)


def test_the_prompt_opens_the_assistants_turn(somebody: Somebody) -> None:
    assert admit(somebody, user("hi")).prompt.ids[-11:] == [START, *ids_of("assistant\n")]
