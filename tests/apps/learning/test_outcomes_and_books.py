"""Outcomes of attempts, people who opt out, and the books: every finished turn is accounted for."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from apps.accounts.models import EndUser
from apps.conversations.models import Session, Turn, TurnKind, TurnState
from apps.judging import services
from apps.judging.models import Judgement, OptOut
from apps.judging.reasons import Reason, explained, reason_of
from apps.learning.accounts import books
from apps.learning.models import Sample, SampleState
from apps.learning.opting_out import opt_in, opt_out
from apps.learning.samples import make_sample
from apps.learning.upkeep import ask_for_unsampled
from kernel.errors import Conflict, InvalidInput, NotFound
from kernel.models import AuditEntry
from kernel.tenancy import tenant_scope
from tests.apps.judging.told import Told
from tests.apps.learning.ledger import add_turn, settle, unsent
from tests.tenants import Somebody


def attempt(somebody: Somebody) -> tuple[Session, list[Turn]]:
    """Three turns of a rollout: judged bad, judged neutral, and the last one, which nothing follows."""
    first = add_turn(somebody, kind=TurnKind.ROLLOUT)
    second = add_turn(somebody, kind=TurnKind.ROLLOUT, session=first.session)
    last = add_turn(
        somebody, kind=TurnKind.ROLLOUT, session=first.session, next_state=None, next_state_at=None
    )
    settle(first, hints=())
    settle(second, reward=0, hints=())
    return first.session, [first, second, last]


def test_every_turn_of_an_attempt_carries_its_outcome_and_its_own_reward(somebody: Somebody) -> None:
    session, turns = attempt(somebody)
    with tenant_scope(somebody.tenant.id):
        services.open_trajectory(session_id=session.id, task="t1", group="t1/3")
        assert [make_sample(turn_id=turn.id) for turn in turns] == [None, None, None]
        assert books().waiting == {"outcome of the attempt awaited": 3}
        assert ask_for_unsampled(older_than_s=-1, limit=10) == 0
        services.record_outcome(session_id=session.id, outcome=0.5)
        assert {m.kwargs["turn_id"] for m in unsent("workers.samples.make_sample")} == {
            str(t.id) for t in turns
        }
        samples = [make_sample(turn_id=turn.id) for turn in turns]
        assert [
            (s.reward, s.rollout_outcome, s.rollout_group, s.rollout_step, s.state)
            for s in samples
            if s is not None
        ] == [
            (-1.0, 0.5, "t1/3", 0, SampleState.READY),
            (None, 0.5, "t1/3", 1, SampleState.READY),
            (None, 0.5, "t1/3", 2, SampleState.READY),
        ]


def test_an_outcome_is_told_once(somebody: Somebody) -> None:
    session, _ = attempt(somebody)
    with tenant_scope(somebody.tenant.id):
        with pytest.raises(NotFound):
            services.record_outcome(session_id=session.id, outcome=1.0)
        services.open_trajectory(session_id=session.id, task="t", group="g")
        services.open_trajectory(session_id=session.id, task="t", group="g")
        with pytest.raises(Conflict):
            services.open_trajectory(session_id=session.id, task="t", group="h")
        for bad in (float("nan"), float("inf"), 1001.0, True):
            with pytest.raises(InvalidInput):
                services.record_outcome(session_id=session.id, outcome=bad)
        services.record_outcome(session_id=session.id, outcome=0.0)
        assert services.record_outcome(session_id=session.id, outcome=0).outcome == 0.0
        with pytest.raises(Conflict):
            services.record_outcome(session_id=session.id, outcome=1.0)


def test_an_attempt_that_is_given_up_leaves_what_was_said_of_its_turns(somebody: Somebody) -> None:
    session, turns = attempt(somebody)
    with tenant_scope(somebody.tenant.id):
        services.open_trajectory(session_id=session.id, task="t", group="g")
        Session.objects.filter(id=session.id).update(idle_at=timezone.now())
        made = [make_sample(turn_id=turn.id) for turn in turns]
        assert [(s.reward, s.reason) for s in made if s is not None] == [
            (-1.0, ""),
            (None, "no signal"),
            (None, "no next state"),
        ]


def test_a_user_who_opts_out_is_neither_judged_nor_trained_on(somebody: Somebody) -> None:
    before = add_turn(somebody)
    settle(before)
    tenant = somebody.tenant.id
    backend = Told()
    with tenant_scope(tenant):
        make_sample(turn_id=before.id)
        row = opt_out(tenant_id=tenant, actor="user:1", user_id=somebody.user.id)
        assert opt_out(tenant_id=tenant, actor="user:1", user_id=somebody.user.id) == row
        sample = Sample.objects.get()
        assert (sample.state, sample.reason, sample.hints) == (SampleState.INELIGIBLE, "opted out", [])
        during = add_turn(somebody)
        assert services.judge(turn_id=during.id, backend=backend) is None
        assert backend.asked == []
        left = make_sample(turn_id=during.id)
        assert left is not None
        assert left.reason == "opted out"
        assert opt_in(row=row, actor="user:1") is True
        assert opt_in(row=row, actor="user:1") is False
        # what was said before stays out, what is said from now on does not
        assert services.judge(turn_id=during.id, backend=backend) is None
        after = add_turn(somebody)
        assert services.judge(turn_id=after.id, backend=backend) is not None
        made = make_sample(turn_id=after.id)
        assert made is not None
        assert made.state == SampleState.READY
        assert books().problems == []
        entry = AuditEntry.objects.get(action="training.opt_out")
        assert entry.detail == {"samples_set_aside": 1}


def test_who_is_let_in_while_they_opt_out_again_is_out(
    somebody: Somebody, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row that is there is found to be there, and ends before it is read."""
    tenant, user = somebody.tenant.id, somebody.user.id
    look = OptOut.objects.filter

    def ended_meanwhile(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(OptOut.objects, "filter", look)
        assert opt_in(row=before, actor="user:2")
        return look(*args, **kwargs)

    with tenant_scope(tenant):
        before = opt_out(tenant_id=tenant, actor="user:1", user_id=user)
        monkeypatch.setattr(OptOut.objects, "filter", ended_meanwhile)
        after = opt_out(tenant_id=tenant, actor="user:1", user_id=user)
        assert after.ended_at is None
        assert list(OptOut.objects.filter(ended_at=None).values_list("pk", flat=True)) == [after.pk]
        before.refresh_from_db()
        assert before.ended_at is not None


def test_an_end_user_who_opts_out_is_alone_in_it(somebody: Somebody) -> None:
    tenant = somebody.tenant.id
    with tenant_scope(tenant):
        ann, bob = (EndUser.objects.create(external_id=name) for name in ("ann", "bob"))
        sessions = [
            Session.objects.create(user=somebody.user, policy=somebody.policy, end_user=who)
            for who in (ann, bob)
        ]
        opt_out(tenant_id=tenant, actor="user:1", end_user_id=ann.id)
        turns = [add_turn(somebody, session=session) for session in sessions]
        for turn in turns:
            settle(turn)
        made = [make_sample(turn_id=turn.id) for turn in turns]
        assert [s.reason for s in made if s is not None] == ["opted out", ""]
        with pytest.raises(InvalidInput):
            opt_out(tenant_id=tenant, actor="user:1")
        with pytest.raises(NotFound):
            opt_out(tenant_id=tenant, actor="user:1", end_user_id=tenant)


def test_every_reason_has_words_and_is_found_again_from_what_is_stored() -> None:
    for reason in Reason:
        assert reason.words.endswith(".")
        assert reason_of(reason.say()) is reason
        assert reason_of(reason.say("some: particulars")) is reason
        assert explained(reason.say("x" * 500)) == reason.words
        assert len(reason.say("x" * 500)) == 200
    assert reason_of("a mood") is None


def test_rare_tokens_are_degenerate(somebody: Somebody) -> None:
    ids = list(range(40))
    with tenant_scope(somebody.tenant.id):
        garble = add_turn(somebody, output_ids=ids, output_logprobs=[-0.5] * 20 + [-7.0] * 8 + [-0.5] * 12)
        ids[::6] = [999] * 7
        rare = add_turn(
            somebody, output_ids=ids, output_logprobs=[-8.0 if i % 6 == 0 else -0.4 for i in range(40)]
        )
        fine = add_turn(somebody, output_ids=ids, output_logprobs=[-0.4] * 40)
        for turn in (garble, rare, fine):
            settle(turn)
        made = [make_sample(turn_id=turn.id) for turn in (garble, rare, fine)]
        assert [s.reason for s in made if s is not None] == [
            "degenerate: 8 rare tokens in a row",
            "degenerate: one rare token 7 times in 40",
            "",
        ]


def fill(somebody: Somebody) -> None:
    """One turn of every kind that the books know."""
    for fields in ({}, {"side": True}, {"state": TurnState.ABORTED}, {"finish_reason": "length"}):
        turn = add_turn(somebody, **fields)
        settle(turn, hints=())
        with tenant_scope(somebody.tenant.id):
            make_sample(turn_id=turn.id)
    add_turn(somebody, next_state=None, next_state_at=None)
    add_turn(somebody)
    pending = add_turn(somebody)
    with tenant_scope(somebody.tenant.id):
        Judgement.objects.create(turn=pending, judge="test", prompt_version="1")


def check(*arguments: str) -> tuple[int, dict[str, object]]:
    out = StringIO()
    try:
        call_command("check_ledger", "--json", *arguments, stdout=out)
    except SystemExit as end:
        return int(end.code or 0), json.loads(out.getvalue())
    return 0, json.loads(out.getvalue())


def test_the_books_agree_and_the_command_says_so(somebody: Somebody) -> None:
    fill(somebody)
    code, found = check("--tenant", "acme")
    assert code == 0
    assert found == {
        "agrees": True,
        "finished": 7,
        "samples": {"ready": 1, "ineligible": 3},
        "reasons": {"aborted": 1, "side turn": 1, "truncated": 1},
        "waiting": {"next state awaited": 1, "sample under way": 1, "judgement under way": 1},
        "problems": [],
    }


def test_a_turn_that_waits_for_nothing_and_an_unlisted_reason_do_not_agree(somebody: Somebody) -> None:
    fill(somebody)
    with tenant_scope(somebody.tenant.id):
        Sample.objects.filter(reason="aborted").update(reason="a mood")
        Sample.objects.filter(state=SampleState.READY).update(policy=_other_policy(somebody))
    code, found = check("--late-after", "-1")
    assert code == 1
    assert found["problems"] == [
        "1 turns give a reason that is not listed: 'a mood'",
        "1 turns have neither sample nor reason, and wait for nothing",
        "1 samples belong to another policy or tenant than their turns",
    ]


def _other_policy(somebody: Somebody) -> object:
    from apps.adapters.models import Policy

    return Policy.objects.create(name="other", base_model="tiny")
