"""What the demo reads in the ledger, and what it does to its own policy."""

import datetime as dt
import uuid

import pytest
from django.utils import timezone

from apps.adapters.models import AdapterVersion, PointerMove, Policy, VersionState
from apps.conversations.models import Session, Turn, TurnKind, TurnState
from apps.evaluation.demo.ledger import Subject, count_talk, read_facts, read_versions
from apps.evaluation.demo.subject import pause_training, prepared
from apps.keys.models import ApiKey, KeyScope
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from kernel.errors import NotFound
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.tenants import Somebody, add_somebody, add_version

pytestmark = pytest.mark.django_db


def _turn(who: Somebody, *, kind: str = TurnKind.LIVE, answered: bool = True) -> Turn:
    now = timezone.now()
    session = Session.objects.create(user=who.user, policy=who.policy, kind=kind)
    return Turn.objects.create(
        session=session,
        policy=who.policy,
        kind=kind,
        state=TurnState.COMPLETE,
        messages=[],
        request_hash=uuid.uuid4().hex,
        body_sha256="",
        reply={"role": "assistant", "content": "x"},
        completed_at=now,
        next_state=[{"role": "user", "content": "no"}] if answered else None,
        next_state_at=now if answered else None,
    )


def test_facts_count_samples_runs_and_moves_of_one_policy() -> None:
    who = add_somebody()
    first, second = (add_version(who.policy, number) for number in (1, 2))
    with tenant_scope(who.tenant.id):
        run = TrainingRun.objects.create(policy=who.policy, state=RunState.RUNNING, trigger="threshold")
        for state, reason in (
            (SampleState.READY, ""),
            (SampleState.READY, ""),
            (SampleState.INELIGIBLE, "no signal"),
        ):
            Sample.objects.create(
                policy=who.policy, turn=_turn(who), source="live", state=state, reason=reason
            )
        _turn(who)  # answered, not settled yet
        _turn(who, answered=False)
        for old, new in ((None, first), (first, second), (second, first), (first, None)):
            PointerMove.objects.create(
                policy=who.policy, from_version=old, to_version=new, actor="t", reason="t"
            )
    facts = read_facts(Subject(who.tenant.id, who.policy.id))
    assert (facts.live, facts.ready, facts.unsettled, facts.open_run) == (2, 2, 1, "running")
    assert (facts.swaps, facts.moves_back) == (2, 2)
    assert facts.samples == {"ready": 2, "ineligible": 1}
    assert facts.left_out == {"no signal": 1}
    assert facts.runs == {"running": 1}
    assert run.state == RunState.RUNNING


def test_what_a_version_waits_for_is_no_problem() -> None:
    who = add_somebody()
    refused, waiting = (add_version(who.policy, number, live=False) for number in (1, 2))
    with tenant_scope(who.tenant.id):
        rows = AdapterVersion.objects.all()
        rows.filter(pk=refused.pk).update(state=VersionState.REFUSED, reason="probe: no")
        rows.filter(pk=waiting.pk).update(state=VersionState.CREATED, reason="waits: no engine is ready")
    facts = read_facts(Subject(who.tenant.id, who.policy.id))
    assert (facts.publishing, facts.last_problem) == (1, "probe: no")


def test_versions_say_what_they_were_made_of() -> None:
    who = add_somebody()
    version = add_version(who.policy, 1)
    began = timezone.now()
    with tenant_scope(who.tenant.id):
        run = TrainingRun.objects.create(
            policy=who.policy,
            state=RunState.SUCCEEDED,
            trigger="threshold",
            version=version,
            started_at=began,
            finished_at=began + dt.timedelta(seconds=12),
            metrics={"ess": 0.9, "seconds": {"learn": 3}},
        )
        turns = [_turn(who) for _ in range(3)]
        for turn, hints in zip(turns, ([{"text": "be brief"}], [], []), strict=True):
            Sample.objects.create(
                policy=who.policy,
                turn=turn,
                source="live",
                state=SampleState.CONSUMED,
                consumed_at=began,
                run=run,
                hints=hints,
            )
        move = PointerMove.objects.create(policy=who.policy, to_version=version, actor="t", reason="t")
    (facts,) = read_versions(Subject(who.tenant.id, who.policy.id))
    assert (facts.number, facts.parent, facts.samples, facts.with_hint, facts.run_seconds) == (
        1,
        0,
        3,
        1,
        12.0,
    )
    assert facts.live_at == move.created_at
    assert (facts.first_feedback_at, facts.last_feedback_at) == (
        turns[0].next_state_at,
        turns[2].next_state_at,
    )
    assert facts.metrics == {"ess": 0.9}


def test_talk_is_counted_by_kind() -> None:
    who = add_somebody()
    with tenant_scope(who.tenant.id):
        _turn(who)
        _turn(who)
        _turn(who, kind=TurnKind.EVALUATION)
    assert count_talk(Subject(who.tenant.id, who.policy.id)) == {"evaluation": 1, "live": 2}


def test_another_tenants_policy_is_out_of_sight() -> None:
    who, other = add_somebody("acme"), add_somebody("globex")
    with pytest.raises(Policy.DoesNotExist):
        read_facts(Subject(other.tenant.id, who.policy.id))


def test_each_demo_has_a_policy_of_its_own_and_keys_that_end_with_it() -> None:
    who = add_somebody("acme", scopes=(KeyScope.CHAT, KeyScope.EVALUATE))
    for expected in ("demo-1", "demo-2"):
        with prepared(tenant_slug="acme", api_key=who.secret, resume=False) as ready:
            assert ready.policy == expected
            with tenant_scope(who.tenant.id):
                keys = {key.name: key for key in ApiKey.objects.filter(name__startswith="demo")}
                live = {key.name: key.scopes for key in keys.values() if key.revoked_at is None}
            assert live == {"demo user": ["chat"], "demo examiner": ["chat", "evaluate"]}
    with tenant_scope(who.tenant.id):
        assert ApiKey.objects.filter(name__startswith="demo", revoked_at=None).count() == 0
        assert sorted(Policy.objects.values_list("name", flat=True)) == ["default", "demo-1", "demo-2"]


def test_a_demo_is_resumed_with_its_training_switched_on_again() -> None:
    who = add_somebody("acme")
    with pytest.raises(NotFound), prepared(tenant_slug="acme", api_key=who.secret, resume=True):
        pass
    with prepared(tenant_slug="acme", api_key=who.secret, resume=False) as ready:
        pause_training(ready.subject)
        with tenant_scope(who.tenant.id):
            assert not Policy.objects.get(name="demo-1").training_enabled
    with prepared(tenant_slug="acme", api_key=who.secret, resume=True) as again:
        assert (again.policy, again.subject) == ("demo-1", ready.subject)
        with tenant_scope(who.tenant.id):
            assert Policy.objects.get(name="demo-1").training_enabled
    with system_scope("test"):
        changes = AuditEntry.objects.filter(action="policy.training").order_by("created_at")
        assert [entry.detail for entry in changes] == [{"enabled": False}, {"enabled": True}]
