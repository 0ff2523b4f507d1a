"""What may teach no more teaches nothing: whoever opts out,
is erased or changes a wish is heard until the commit."""

from collections.abc import Callable, Iterator

import pytest
from pytest_django import Settings

from apps.adapters.models import AdapterVersion
from apps.conversations.models import Session, TurnKind
from apps.engines.models import Engine, EngineState
from apps.judging.models import OptOut
from apps.judging.reasons import Reason
from apps.learning import commits, refusals, runs
from apps.learning.accounts import books
from apps.learning.commits import StepResult
from apps.learning.models import Sample, SampleState, TrainingRun
from apps.learning.opting_out import opt_out
from apps.learning.shadow.due import drop_outdated
from apps.memory import services as memory
from apps.memory.lessons import standing
from apps.memory.models import Preference
from kernel.tenancy import tenant_scope
from tests.apps.learning.artefacts import write_files
from tests.apps.learning.ledger import (
    HINT,
    add_samples,
    add_turn,
    made,
    queue_run,
    runs_of,
    settle,
    states_of,
)
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody, add_somebody, add_version
from workers import shadow

WISH = "Answer in one short sentence."
TOO_LONG = Reason.NOT_TAKEN.say("too long")
REFUSED = StepResult(outcome="refused", code="not_finite", reason="the loss is not finite")
FAILED = StepResult(outcome="failed", code="no_space", reason="no space left on the device")


@pytest.fixture
def engine(somebody: Somebody, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    settings.SHADOW_QUIET_S = 0.0
    monkeypatch.setattr(shadow.yardstick, "prepare", lambda **_: None)
    with FakeEngine(api_key=settings.ENGINE_API_KEY, admin_key=settings.ENGINE_ADMIN_KEY) as running:
        Engine.objects.create(url=running.url, state=EngineState.READY, boot_id="1")
        yield running


def claim(somebody: Somebody, run: TrainingRun) -> runs.Claim:
    taken = runs.claim_run(run_id=run.id)
    assert taken is not None
    return taken


def of_another(somebody: Somebody, samples: list[Sample]) -> Somebody:
    """Give samples to another user of the tenant."""
    other = add_somebody(tenant=somebody.tenant)
    with tenant_scope(somebody.tenant.id):
        Session.objects.filter(turns__sample__in=samples).update(user=other.user)
    return other


def shadow_samples(somebody: Somebody) -> tuple[Preference, TrainingRun]:
    """A preference, and the batch of shadow samples that teaches it, queued for a step."""
    with tenant_scope(somebody.tenant.id):
        row = memory.add_preference(
            policy_id=somebody.policy.id, user_id=somebody.user.id, end_user=None, text=WISH, actor="test"
        )
    shadow.look()
    assert states_of(somebody) == {"ready": 8}
    (run,) = runs_of(somebody)
    return row, run


def test_a_step_with_the_words_of_who_opted_out_meanwhile_makes_no_version(somebody: Somebody) -> None:
    samples = add_samples(somebody, 8)
    other = of_another(somebody, samples[:2])
    with tenant_scope(somebody.tenant.id):
        taken = claim(somebody, queue_run(somebody))
        assert len(taken.samples) == 8
        opt_out(tenant_id=somebody.tenant.id, actor="user:1", user_id=other.user.id)
        run = commits.commit_run(
            run_id=taken.run.id, fence=taken.fence, result=made(taken, *write_files(taken))
        )
        assert (run.state, run.version) == ("cancelled", None)
        assert run.reason == "2 of the samples that this step learned from may teach no more"
        assert AdapterVersion.objects.count() == 0
        left = Sample.objects.filter(state=SampleState.INELIGIBLE)
        assert {(one.id, one.reason, tuple(one.hints), one.reward) for one in left} == {
            (sample.id, "opted out", (), None) for sample in samples[:2]
        }
        assert books().problems == []
    assert states_of(somebody) == {"ineligible": 2, "ready": 6}


def test_a_failed_step_does_not_give_them_back(somebody: Somebody) -> None:
    samples = add_samples(somebody, 8)
    other = of_another(somebody, samples[:2])
    with tenant_scope(somebody.tenant.id):
        run = queue_run(somebody, "operator:1")
        taken = claim(somebody, run)
        opt_out(tenant_id=somebody.tenant.id, actor="user:1", user_id=other.user.id)
        commits.commit_run(run_id=run.id, fence=taken.fence, result=FAILED)
        again = claim(somebody, run)
        assert {sample.id for sample in again.samples} == {sample.id for sample in samples[2:]}
    assert states_of(somebody) == {"claimed": 6, "ineligible": 2}


def test_a_sample_that_was_made_while_its_person_opted_out_is_not_taken(somebody: Somebody) -> None:
    samples = add_samples(somebody, 8)
    other = of_another(somebody, samples[:1])
    with tenant_scope(somebody.tenant.id):
        # as whoever opts out leaves it where the sample is written in the same moment
        OptOut.objects.create(tenant=somebody.tenant, user=other.user, actor="user:1")
        taken = claim(somebody, queue_run(somebody, "operator:1"))
        assert {sample.id for sample in taken.samples} == {sample.id for sample in samples[1:]}


def test_opting_out_of_one_tenant_says_nothing_of_another(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    elsewhere = add_somebody("elsewhere")
    with tenant_scope(elsewhere.tenant.id):
        OptOut.objects.create(tenant=elsewhere.tenant, user=somebody.user, actor="user:1")
    with tenant_scope(somebody.tenant.id):
        assert len(claim(somebody, queue_run(somebody)).samples) == 8


def test_a_step_with_a_turn_that_was_erased_meanwhile_makes_no_version(somebody: Somebody) -> None:
    samples = add_samples(somebody, 8)
    with tenant_scope(somebody.tenant.id):
        taken = claim(somebody, queue_run(somebody))
        samples[0].turn.session.delete()
        run = commits.commit_run(
            run_id=taken.run.id, fence=taken.fence, result=made(taken, *write_files(taken))
        )
        assert (run.state, run.reason) == (
            "cancelled",
            "1 of the samples that this step learned from may teach no more",
        )
        assert AdapterVersion.objects.count() == 0
    assert states_of(somebody) == {"ready": 7}


def test_a_wish_that_is_deleted_while_its_step_runs_is_not_learned(
    somebody: Somebody, engine: FakeEngine
) -> None:
    preference, run = shadow_samples(somebody)
    with tenant_scope(somebody.tenant.id):
        taken = claim(somebody, run)
        memory.delete_preference(preference_id=preference.id, user_id=somebody.user.id, actor="test")
        ended = commits.commit_run(
            run_id=taken.run.id, fence=taken.fence, result=made(taken, *write_files(taken))
        )
        assert (ended.state, ended.version) == ("cancelled", None)
        assert set(Sample.objects.values_list("state", "reason")) == {("dropped", "no longer wanted")}
        # nor are its words kept
        assert list(Sample.objects.exclude(hints=[])) == []
        assert books().problems == []


def test_a_wish_that_was_worded_anew_is_not_learned_in_its_old_words(
    somebody: Somebody, engine: FakeEngine
) -> None:
    preference, run = shadow_samples(somebody)
    with tenant_scope(somebody.tenant.id):
        memory.edit_preference(
            preference_id=preference.id,
            user_id=somebody.user.id,
            text="Answer at length.",
            pinned=None,
            actor="test",
        )
        assert runs.claim_run(run_id=run.id) is None
        run.refresh_from_db()
        assert (run.state, run.reason) == ("no_op", "no samples wait")
    assert states_of(somebody) == {"dropped": 8}


def test_what_does_not_say_how_a_wish_was_worded_is_not_learned(
    somebody: Somebody, engine: FakeEngine
) -> None:
    preference, run = shadow_samples(somebody)
    with tenant_scope(somebody.tenant.id):
        for sample in Sample.objects.all():  # as they were written before a wish had a revision
            sample.hints = [{**sample.hints[0], "preferences": [str(preference.id)]}]
            sample.save()
        assert runs.claim_run(run_id=run.id) is None
    assert states_of(somebody) == {"dropped": 8}


def said_twice(somebody: Somebody) -> tuple[Session, TrainingRun]:
    """A wish that two sessions said, each in its own words,
    and the queued batch that teaches it in the first one's."""
    sessions = []
    for words in ("Say it in one short sentence.", "Cut it down to one short sentence."):
        turn = add_turn(somebody)
        settle(turn, hints=(words,))
        with tenant_scope(somebody.tenant.id):
            memory.remember(turn_id=turn.id)
        sessions.append(turn.session)
    shadow.look()
    assert states_of(somebody) == {"ready": 8}
    (run,) = runs_of(somebody)
    return sessions[0], run


def test_a_wish_whose_session_is_deleted_while_its_step_runs_is_not_learned(
    somebody: Somebody, engine: FakeEngine
) -> None:
    """Its row is there until upkeep comes by: without words nobody wants it."""
    turn = add_turn(somebody)
    settle(turn)
    with tenant_scope(somebody.tenant.id):
        memory.remember(turn_id=turn.id)
    shadow.look()
    (run,) = runs_of(somebody)
    with tenant_scope(somebody.tenant.id):
        taken = claim(somebody, run)
        turn.session.delete()
        assert Preference.objects.get().state == "active"
        ended = commits.commit_run(
            run_id=taken.run.id, fence=taken.fence, result=made(taken, *write_files(taken))
        )
        assert (ended.state, ended.version) == ("cancelled", None)
        rows = Sample.objects.filter(source=TurnKind.SHADOW)
        assert set(rows.values_list("state", "reason")) == {("dropped", "no longer wanted")}
        assert list(rows.exclude(hints=[])) == []


def test_a_wish_is_not_learned_in_the_words_of_a_session_that_was_deleted(
    somebody: Somebody, engine: FakeEngine
) -> None:
    """Another session said it too: it is wanted still, in that one's words."""
    first, run = said_twice(somebody)
    with tenant_scope(somebody.tenant.id):
        assert Preference.objects.count() == 1
        first.delete()
        assert runs.claim_run(run_id=run.id) is None
        assert Preference.objects.get().revision == 1
    assert states_of(somebody) == {"dropped": 8}


def test_waiting_replies_are_taken_back_with_the_words_that_they_teach(
    somebody: Somebody, engine: FakeEngine
) -> None:
    first, _ = said_twice(somebody)
    with tenant_scope(somebody.tenant.id):
        stands = standing(somebody.policy)
        assert not isinstance(stands, str)
        assert drop_outdated(somebody.policy, stands) == 0
        first.delete()
        stands = standing(somebody.policy)
        assert not isinstance(stands, str)
        assert drop_outdated(somebody.policy, stands) == 8


def test_what_is_learned_by_then_may_be_learned_on(somebody: Somebody, engine: FakeEngine) -> None:
    preference, run = shadow_samples(somebody)
    with tenant_scope(somebody.tenant.id):
        taken = claim(somebody, run)
        Preference.objects.filter(id=preference.id).update(pinned=True)
        ended = commits.commit_run(
            run_id=taken.run.id, fence=taken.fence, result=made(taken, *write_files(taken))
        )
        assert ended.state == "succeeded"
        kept = [sample.hints for sample in Sample.objects.filter(source=TurnKind.SHADOW)]
        # the words stay with the preference
        wanted = [{"id": str(preference.id), "revision": 1}]
        assert kept == [[{"text": "", "prompt_ids": [], "preferences": wanted}]] * 8
    assert states_of(somebody) == {"consumed": 8}


def _is_stale(somebody: Somebody, run: TrainingRun) -> None:
    add_version(somebody.policy, 9)
    runs.claim_run(run_id=run.id)


def _is_on_another_branch(somebody: Somebody, run: TrainingRun) -> None:
    left = add_version(somebody.policy, 1, live=False)
    Sample.objects.update(version=left)
    runs.claim_run(run_id=run.id)


def _changes_nothing(somebody: Somebody, run: TrainingRun) -> None:
    taken = claim(somebody, run)
    result = StepResult(outcome="no_op", code="no_signal", reason="nothing to learn")
    commits.commit_run(run_id=run.id, fence=taken.fence, result=result)


def _cannot_be_taken(somebody: Somebody, run: TrainingRun) -> None:
    taken = claim(somebody, run)
    for sample in taken.samples:
        runs.set_aside(run_id=run.id, fence=taken.fence, sample_id=sample.id, reason=TOO_LONG)


def _is_in_too_many_refused_steps(somebody: Somebody, run: TrainingRun) -> None:
    somebody.policy.config = {"refusals": 1}
    somebody.policy.save()
    taken = claim(somebody, run)
    commits.commit_run(run_id=run.id, fence=taken.fence, result=REFUSED)
    # no step could learn from them again
    assert refusals.set_aside(somebody.policy.id) == []
    assert refusals.replay(policy=somebody.policy, actor="test") == 0


@pytest.mark.parametrize(
    "end",
    [
        _is_stale,
        _is_on_another_branch,
        _changes_nothing,
        _cannot_be_taken,
        _is_in_too_many_refused_steps,
    ],
)
def test_a_shadow_sample_that_is_over_keeps_no_words_of_the_wish(
    somebody: Somebody, engine: FakeEngine, end: Callable[[Somebody, TrainingRun], None]
) -> None:
    """Whoever deletes the wish later would leave a copy of it there."""
    _, run = shadow_samples(somebody)
    with tenant_scope(somebody.tenant.id):
        end(somebody, run)
        assert set(Sample.objects.values_list("state", flat=True)) <= {"dropped", "ineligible"}
        assert list(Sample.objects.exclude(hints=[])) == []
        assert books().problems == []


def test_a_live_sample_that_is_over_keeps_what_was_said_of_it(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    with tenant_scope(somebody.tenant.id):
        _is_on_another_branch(somebody, queue_run(somebody))
        assert set(Sample.objects.values_list("hints__0__text", flat=True)) == {HINT}
    assert states_of(somebody) == {"ineligible": 8}
