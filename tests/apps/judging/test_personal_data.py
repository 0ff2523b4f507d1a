"""Personal data: found by form, kept from judges and from what is learned."""

import pytest

from apps.conversations.models import Feedback
from apps.judging import services
from apps.judging.personal_data import find, kinds_in, redact
from apps.learning.models import SampleState
from apps.learning.samples import make_sample
from kernel.tenancy import tenant_scope
from tests.apps.judging.told import Told
from tests.apps.learning.ledger import add_turn, settle
from tests.tenants import Somebody

MAIL = "Write to ann.lee@example.co.uk, please."


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (MAIL, ["email address"]),
        ("Call +1 415 555 2671 tomorrow.", ["phone number"]),
        ("Pay with 4111 1111 1111 1111.", ["card number"]),
        ("IBAN DE89 3704 0044 0532 0130 00", ["bank account"]),
        ("It runs on 192.168.0.1.", ["network address"]),
        ("My SSN is 536-90-4399.", ["social security number"]),
        ("order 1234567890123456", []),  # no check sum
        ("The answer is 42, or 3.14159, from 1999 to 2004.", []),
        ("x@y is no address, nor is user@localhost.", []),
        ("", []),
    ],
)
def test_what_has_a_form_is_found(text: str, kinds: list[str]) -> None:
    assert [finding.kind for finding in find(text)] == kinds


def test_it_is_redacted_wherever_it_is() -> None:
    assert redact(MAIL) == "Write to [email address], please."
    long = "word " * 4100
    assert redact(f"{long}{MAIL}{long}") == f"{long}Write to [email address], please.{long}"
    assert kinds_in([{"content": [{"text": MAIL}], "n": 1}], "+1 415 555 2671") == [
        "email address",
        "phone number",
    ]


def change(somebody: Somebody, mode: str) -> None:
    with tenant_scope(somebody.tenant.id):
        services.change_judging(
            tenant_id=somebody.tenant.id,
            policy=somebody.policy,
            changes={"personal_data": mode},
            actor="user:1",
        )


def test_redacted_judges_do_not_see_it_and_hints_and_replies_with_it_do_not_teach(somebody: Somebody) -> None:
    change(somebody, "redact")
    asked = add_turn(somebody, question=MAIL)
    told = add_turn(somebody)
    said = add_turn(somebody, reply={"role": "assistant", "content": MAIL})
    backend = Told(scores=(-1, -1, -1), hints=())
    with tenant_scope(somebody.tenant.id):
        services.judge(turn_id=asked.id, backend=backend)
        assert backend.asked[0].request[0]["content"] == "Write to [email address], please."
        settle(told, reward=0, hints=(MAIL,))
        settle(said)
        made = [make_sample(turn_id=turn.id) for turn in (asked, told, said)]
        assert [(s.state, s.reason) for s in made if s is not None] == [
            (SampleState.READY, ""),
            (SampleState.INELIGIBLE, "personal data: in every hint"),
            (SampleState.INELIGIBLE, "personal data: email address"),
        ]
        Feedback.objects.create(turn=told, user=somebody.user, score=-1, correction=MAIL)
        again = make_sample(turn_id=told.id)
        assert again is not None
        assert (again.state, again.reward, again.hints) == (SampleState.READY, -1.0, [])


def test_dropped_it_keeps_the_turn_from_teaching_wherever_it_is(somebody: Somebody) -> None:
    change(somebody, "drop")
    turns = [
        add_turn(somebody, question=MAIL),
        add_turn(somebody, next_state=[{"role": "user", "content": MAIL}]),
        add_turn(somebody, reply={"role": "assistant", "content": MAIL}),
        add_turn(somebody),
    ]
    with tenant_scope(somebody.tenant.id):
        for turn in turns:
            settle(turn)
        made = [make_sample(turn_id=turn.id) for turn in turns]
    assert [s.reason for s in made if s is not None] == ["personal data: email address"] * 3 + [""]


def test_switched_off_nothing_is_looked_for(somebody: Somebody) -> None:
    turn = add_turn(somebody, question=MAIL)
    with tenant_scope(somebody.tenant.id):
        settle(turn, hints=(MAIL,))
        sample = make_sample(turn_id=turn.id)
    assert sample is not None
    assert [hint["text"] for hint in sample.hints] == [MAIL]
