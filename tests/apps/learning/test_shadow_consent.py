"""Shadow rollouts teach nobody's weights what may not teach:
who opted out, personal data where a policy forbids it."""

import datetime as dt
from collections.abc import Iterator

import pytest
from django.utils import timezone
from pytest_django import Settings

from apps.conversations.models import Session, Turn, TurnKind
from apps.engines.models import Engine, EngineState
from apps.judging.services import change_judging
from apps.learning.accounts import books
from apps.learning.models import Sample
from apps.learning.opting_out import opt_out
from apps.learning.shadow.plan import Wave, next_wave
from apps.learning.shadow.questions import teaching_questions
from apps.memory import services as memory
from kernel.tenancy import tenant_scope
from tests.apps.learning.ledger import add_turn, states_of
from tests.apps.memory.told import person
from tests.fake_engine import FakeEngine
from tests.fake_generation import END_OF_TURN, Token
from tests.tenants import Somebody
from workers import shadow

WISH = "Answer in one short sentence."
MAIL = "ann@example.com"


@pytest.fixture
def engine(somebody: Somebody, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    settings.SHADOW_QUIET_S = 0.0
    monkeypatch.setattr(shadow.yardstick, "prepare", lambda **_: None)
    with FakeEngine(api_key=settings.ENGINE_API_KEY, admin_key=settings.ENGINE_ADMIN_KEY) as running:
        Engine.objects.create(url=running.url, state=EngineState.READY, boot_id="1")
        yield running


def want(somebody: Somebody, text: str = WISH) -> None:
    with tenant_scope(somebody.tenant.id):
        memory.add_preference(
            policy_id=somebody.policy.id, user_id=somebody.user.id, end_user=None, text=text, actor="test"
        )


def ask(somebody: Somebody, question: str) -> None:
    """A live turn of a while ago."""
    ago = timezone.now() - dt.timedelta(hours=1)
    turn = add_turn(somebody, question=question, completed_at=ago)
    with tenant_scope(somebody.tenant.id):
        Turn.objects.filter(id=turn.id).update(created_at=ago)
        Session.objects.filter(id=turn.session_id).update(last_turn_at=timezone.now())


def forbid(somebody: Somebody, mode: str) -> None:
    with tenant_scope(somebody.tenant.id):
        change_judging(
            tenant_id=somebody.tenant.id,
            policy=somebody.policy,
            changes={"personal_data": mode},
            actor="test",
        )


def wave(somebody: Somebody) -> Wave | str:
    with tenant_scope(somebody.tenant.id):
        somebody.policy.refresh_from_db()
        return next_wave(somebody.policy)


def test_who_opted_out_is_told_and_not_taught(somebody: Somebody, engine: FakeEngine) -> None:
    want(somebody)
    shadow.look()
    assert states_of(somebody) == {"ready": 8}
    with tenant_scope(somebody.tenant.id):
        opt_out(tenant_id=somebody.tenant.id, actor="user:1", user_id=somebody.user.id)
    asked = len(engine.requests)

    shadow.look()

    assert wave(somebody) == "a step is under way"
    with tenant_scope(somebody.tenant.id):
        Sample.objects.all().delete()
        somebody.policy.runs.all().delete()
    assert wave(somebody) == "the person takes no part in training: what they want is told, not taught"
    assert len(engine.requests) == asked


@pytest.mark.parametrize("mode", ["redact", "drop"])
def test_a_wish_that_holds_personal_data_is_told_and_not_taught(somebody: Somebody, mode: str) -> None:
    want(somebody, f"Sign every answer with {MAIL}.")
    assert isinstance(wave(somebody), Wave)
    forbid(somebody, mode)
    assert wave(somebody) == "what is wanted holds personal data: it is told, not taught"
    want(somebody)
    planned = wave(somebody)
    assert isinstance(planned, Wave)
    assert planned.stands.hint == WISH


def test_a_question_that_holds_personal_data_is_not_asked(somebody: Somebody) -> None:
    ask(somebody, f"Who is {MAIL}?")
    ask(somebody, "What is rain?")

    def stored() -> list[str]:
        with tenant_scope(somebody.tenant.id):
            found = teaching_questions(somebody.policy, person(somebody))
            return [question.messages[-1]["content"] for question in found if question.stored]

    assert stored() == ["What is rain?", f"Who is {MAIL}?"]
    forbid(somebody, "redact")  # the words before a reply are not trained on
    assert stored() == ["What is rain?", f"Who is {MAIL}?"]
    forbid(somebody, "drop")
    assert stored() == ["What is rain?"]


def test_a_reply_that_holds_personal_data_teaches_nothing(somebody: Somebody, engine: FakeEngine) -> None:
    forbid(somebody, "redact")
    want(somebody)
    engine.reply = lambda _: (Token(100, f"Ask {MAIL}."), Token(END_OF_TURN, ""))

    shadow.look()

    with tenant_scope(somebody.tenant.id):
        rows = Sample.objects.filter(source=TurnKind.SHADOW)
        assert set(rows.values_list("state", "reason")) == {("ineligible", "personal data: email address")}
        assert list(rows.exclude(hints=[])) == []
        assert books().problems == []
