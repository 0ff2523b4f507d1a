"""What a prompt is told beside the client's messages:
where it stands, that it is recorded, that a change re-renders."""

from dataclasses import replace

from apps.conversations.services import Admitted, admit_turn, complete_turn
from apps.conversations.told import Told, with_reminder, with_told
from tests.apps.conversations.talk import Said, asked, assistant, sessions, turn, user, written
from tests.chat_model import END, chatml, ids_of
from tests.tenants import Somebody

TOLD = Told("Preferences:\n- brief", ({"id": "1", "revision": 2},), 9)
SYSTEM = {"role": "system", "content": "Be kind."}


def admitted(somebody: Somebody, *messages: Said, told: Told | None) -> Admitted:
    outcome = admit_turn(
        caller=somebody.caller,
        policy_id=somebody.policy.id,
        version_id=None,
        request=replace(asked(*messages, body=f"{len(messages)}{told}"[:60]), told=told),
        engine_id=None,
    )
    assert isinstance(outcome, Admitted)
    return outcome


def test_it_follows_the_operators_own_text_and_is_recorded(somebody: Somebody) -> None:
    stored = turn(somebody, admitted(somebody, SYSTEM, user("hi"), told=TOLD))

    assert stored.prompt_ids == chatml(("system", "Be kind.\n\nPreferences:\n- brief"), ("user", "hi"))
    assert stored.messages == [SYSTEM, user("hi")]
    assert stored.memory == {
        "text": "Preferences:\n- brief",
        "entries": [{"id": "1", "revision": 2}],
        "tokens": 9,
        "default_system": "",
        "reminder": "",
    }


def test_without_anything_told_nothing_is_recorded(somebody: Somebody) -> None:
    assert turn(somebody, admitted(somebody, user("hi"), told=None)).memory is None


def test_the_same_again_extends_the_exact_tokens(somebody: Somebody) -> None:
    first = admitted(somebody, user("hi"), told=TOLD)
    complete_turn(tenant_id=somebody.tenant.id, turn_id=first.turn_id, generation=written("yes"))
    second = turn(somebody, admitted(somebody, user("hi"), assistant("yes"), user("on"), told=TOLD))

    before = turn(somebody, first)
    assert second.prompt_source == "extended"
    assert second.prompt_ids[: len(before.prompt_ids) + 4] == [*before.prompt_ids, *ids_of("yes"), END]
    assert len(sessions(somebody)) == 1


def test_a_change_renders_anew_in_the_same_session_and_says_why(somebody: Somebody) -> None:
    first = admitted(somebody, user("hi"), told=None)
    complete_turn(tenant_id=somebody.tenant.id, turn_id=first.turn_id, generation=written("yes"))
    second = turn(somebody, admitted(somebody, user("hi"), assistant("yes"), user("on"), told=TOLD))

    assert (second.prompt_source, second.prompt_reason) == ("rendered", "memory changed")
    assert second.parent_id == first.turn_id
    assert second.prompt_ids == chatml(
        ("system", TOLD.text), ("user", "hi"), ("assistant", "yes"), ("user", "on")
    )
    complete_turn(tenant_id=somebody.tenant.id, turn_id=second.id, generation=written("well"))
    third = turn(
        somebody,
        admitted(
            somebody, user("hi"), assistant("yes"), user("on"), assistant("well"), user("so"), told=None
        ),
    )
    assert (third.prompt_source, third.prompt_reason, third.memory) == ("rendered", "memory changed", None)
    assert len(sessions(somebody)) == 1


def test_where_the_context_has_no_room_it_is_left_out(somebody: Somebody, settings: object) -> None:
    settings.CONTEXT_LENGTH = 60  # type: ignore[attr-defined]
    stored = turn(somebody, admitted(somebody, user("hi"), told=replace(TOLD, text="x" * 80)))
    assert stored.prompt_ids == chatml(("user", "hi"))
    assert stored.memory is None
    assert stored.prompt_reason == "memory left out: context_length_exceeded"


def test_a_reminder_follows_the_last_words_of_the_person_and_extends_too(somebody: Somebody) -> None:
    told = replace(TOLD, reminder="Be brief.")
    first = admitted(somebody, user("hi"), told=told)
    before = turn(somebody, first)
    assert before.prompt_ids == chatml(("user", "hi\n\nBe brief."))  # and in the system message not once more
    assert before.messages == [user("hi")]
    complete_turn(tenant_id=somebody.tenant.id, turn_id=first.turn_id, generation=written("yes"))

    second = turn(somebody, admitted(somebody, user("hi"), assistant("yes"), user("on"), told=told))
    assert second.prompt_source == "extended"
    added = chatml(("user", "on\n\nBe brief."))
    assert second.prompt_ids == [*before.prompt_ids, *ids_of("yes"), END, *ids_of("\n"), *added]


def test_the_clients_messages_stay_as_they_are() -> None:
    messages = [SYSTEM, user("hi")]
    assert with_told(messages, None) == messages
    assert with_told([user("hi")], Told("x")) == [{"role": "system", "content": "x"}, user("hi")]
    tool = {"role": "tool", "content": "42"}
    reminded = replace(TOLD, reminder="Be brief.")
    assert with_told([user("hi"), tool], reminded) == [user("hi\n\nBe brief."), tool]
    assert with_reminder([tool], reminded) == [tool]
    assert with_told([tool], reminded) == [
        {"role": "system", "content": TOLD.text},
        tool,
    ]  # told all the same
    assert messages == [{"role": "system", "content": "Be kind."}, user("hi")]


def test_a_reminder_follows_content_in_parts_as_a_part_of_its_own() -> None:
    told = replace(TOLD, reminder="Be brief.")
    parts = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    reminded = {
        "role": "user",
        "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "\n\nBe brief."}],
    }
    assert with_reminder([user("so"), parts, assistant("yes")], told) == [
        user("so"),
        reminded,
        assistant("yes"),
    ]
    assert parts == {"role": "user", "content": [{"type": "text", "text": "hi"}]}


def test_what_the_models_template_says_of_its_own_accord_is_said_before_what_is_told() -> None:
    told = Told("x", default_system="You are Model.")
    assert with_told([user("hi")], told) == [{"role": "system", "content": "You are Model.\n\nx"}, user("hi")]
    # a client's own system message takes its place, as it does without memory
    assert with_told([SYSTEM, user("hi")], told) == [
        {"role": "system", "content": "Be kind.\n\nx"},
        user("hi"),
    ]
    assert Told.of(told.to_json()) == told
