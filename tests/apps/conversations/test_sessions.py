"""Whose a session is, what names it, and that nobody else's is gone on with."""

from typing import Any

import pytest
from django.db import connection

from apps.conversations.models import Session, Turn
from apps.conversations.services import admission
from kernel.errors import InvalidInput
from kernel.tenancy import tenant_scope
from tests.apps.conversations.talk import (
    admit,
    assistant,
    say,
    sessions,
    turn,
    user,
)
from tests.chat_model import chatml
from tests.tenants import Somebody, add_somebody

pytestmark = pytest.mark.django_db


def test_in_a_named_session_a_changed_system_message_renders_anew_and_says_so(somebody: Somebody) -> None:
    first = say(somebody, {"role": "system", "content": "be kind"}, user("hi"), reply="Hello", session="s-1")

    second = admit(
        somebody,
        {"role": "system", "content": "be brief"},
        user("hi"),
        assistant("Hello"),
        user("more"),
        session="s-1",
    )

    stored = turn(somebody, second)
    assert (stored.parent_id, stored.session_id) == (first.id, first.session_id)
    assert (stored.prompt_source, stored.prompt_reason) == ("rendered", "system message changed")
    assert stored.prompt_ids == chatml(
        ("system", "be brief"), ("user", "hi"), ("assistant", "Hello"), ("user", "more")
    )
    assert turn(somebody, first).next_state == [{"role": "user", "content": "more"}]
    assert second.session == "s-1"


def test_a_named_session_keeps_turns_that_repeat_nothing_as_roots(somebody: Somebody) -> None:
    first = say(somebody, user("one"), session="s-1")
    second = say(somebody, user("two"), session="s-1")

    assert first.session_id == second.session_id
    assert second.parent_id is None
    assert turn(somebody, first).next_state is None


def test_our_own_id_names_a_session_too(somebody: Somebody) -> None:
    first = say(somebody, user("hi"))

    second = say(somebody, user("other"), session=str(first.session_id))

    assert second.session_id == first.session_id


def test_a_session_belongs_to_its_user_whatever_id_the_client_sends(somebody: Somebody) -> None:
    colleague = add_somebody(tenant=somebody.tenant)
    mine = say(somebody, user("hi"), session="shared")

    for named in ("shared", str(mine.session_id)):
        theirs = say(colleague, user("hi"), session=named)
        assert theirs.session_id != mine.session_id
        assert theirs.session.user_id == colleague.user.id
    assert turn(somebody, mine).next_state is None


def test_a_session_belongs_to_its_tenant_whatever_id_the_client_sends(somebody: Somebody) -> None:
    stranger = add_somebody("other")
    mine = say(somebody, user("hi"), reply="Hello", session="shared")

    for named in ("shared", str(mine.session_id), None):
        theirs = say(stranger, user("hi"), assistant("Hello"), user("x"), session=named)
        assert theirs.parent_id is None
        assert theirs.session_id != mine.session_id
    assert turn(somebody, mine).next_state is None
    assert len(sessions(somebody)) == 1


def test_end_users_are_not_stitched_together(somebody: Somebody) -> None:
    first = say(somebody, user("hi"), reply="Hello", end_user="ann")

    second = say(somebody, user("hi"), assistant("Hello"), user("x"), end_user="bob")

    assert second.parent_id is None
    assert second.session_id != first.session_id
    with pytest.raises(InvalidInput) as refusal:
        admit(somebody, user("hi"), session=str(first.session_id), end_user="bob")
    assert refusal.value.code == "session_mismatch"


def test_the_database_itself_shows_no_turn_of_another_tenant(somebody: Somebody) -> None:
    mine = say(somebody, user("hi"))
    other = add_somebody("other")

    with tenant_scope(other.tenant.id):
        assert Turn.objects.filter(id=mine.id).count() == 0
        assert Session.objects.count() == 0
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM conversations_turn")
            assert cursor.fetchone() == (0,)
            cursor.execute("UPDATE conversations_turn SET error = 'x'")
            assert cursor.rowcount == 0


def test_a_session_that_is_deleted_before_it_is_gone_on_with_begins_anew(
    somebody: Somebody, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = say(somebody, user("hello"), session="mine")
    real, looked = admission.build_prompt, []

    def slow(**asked: Any) -> Any:
        """Everything is known of the request when its session goes."""
        looked.append(asked["place"].session)
        if len(looked) == 1:
            with tenant_scope(somebody.tenant.id):
                Session.objects.filter(pk=first.session_id).delete()
        return real(**asked)

    monkeypatch.setattr(admission, "build_prompt", slow)
    second = say(somebody, user("hello"), assistant("ok"), user("more"), session="mine")
    assert [place is None for place in looked] == [False, True]
    assert second.session_id != first.session_id
    assert (second.parent_id, second.session.external_id) == (None, "mine")
    assert [one.pk for one in sessions(somebody)] == [second.session_id]
