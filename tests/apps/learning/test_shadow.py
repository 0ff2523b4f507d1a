"""Shadow rollouts: what is asked, what a reply becomes, and that everybody else comes first."""

import datetime as dt
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import EndUser, Tenant
from apps.adapters.models import AdapterVersion, Policy
from apps.conversations.models import Session, Turn, TurnKind, TurnState
from apps.engines.models import DesiredAdapter, Engine, EngineState, LoadedAdapter, LoadState
from apps.governance.erasure.requests import request_erasure
from apps.governance.erasure.subjects import Meant
from apps.governance.erasure.work import Step, erase
from apps.governance.models import Subject
from apps.learning.drift.pauses import pause
from apps.learning.models import Sample, SampleState, TrainingRun
from apps.learning.opting_out import opt_out
from apps.learning.runs import claim_run
from apps.learning.samples import make_sample
from apps.learning.shadow import rollouts
from apps.learning.shadow.due import candidates
from apps.learning.shadow.plan import Wave, next_wave, tokens_today
from apps.learning.shadow.questions import FEW, neutral, teaching_questions
from apps.learning.shadow.rollouts import roll_out
from apps.memory import services
from apps.memory.lessons import Standing, current_lesson, standing
from apps.memory.models import Lesson, LessonState, Preference
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.ledger import add_samples, add_turn, settle
from tests.apps.memory.told import person, said
from tests.chat_model import chatml
from tests.fake_engine import FakeEngine
from tests.fake_generation import END_OF_TURN, Token
from tests.locks import wait_for_a_lock
from tests.tenants import Somebody, add_somebody, add_version
from workers import shadow

WISH = "Answer in one short sentence."


@pytest.fixture
def engine(somebody: Somebody, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    settings.SHADOW_QUIET_S = 0.0
    # this engine's base cannot be told anything: what versions are measured by has tests of its own
    monkeypatch.setattr(shadow.yardstick, "prepare", lambda **_: None)
    with FakeEngine(api_key=settings.ENGINE_API_KEY, admin_key=settings.ENGINE_ADMIN_KEY) as running:
        Engine.objects.create(url=running.url, state=EngineState.READY, boot_id="1")
        yield running


def want(somebody: Somebody, text: str = WISH, end_user: str | None = None) -> Preference:
    with tenant_scope(somebody.tenant.id):
        return services.add_preference(
            policy_id=somebody.policy.id, user_id=somebody.user.id, end_user=end_user, text=text, actor="test"
        )


def hear(somebody: Somebody, words: str = WISH) -> Turn:
    """A turn of a while ago whose verdict says what its person wants."""
    turn = ask(somebody, "What is rain?")
    settle(turn, hints=(words,))
    with tenant_scope(somebody.tenant.id):
        services.remember(turn_id=turn.id)
    return turn


def wave(somebody: Somebody) -> Wave | str:
    with tenant_scope(somebody.tenant.id):
        somebody.policy.refresh_from_db()
        return next_wave(somebody.policy)


def ask(somebody: Somebody, question: str, **fields: Any) -> Turn:
    """A live turn of a while ago."""
    ago = timezone.now() - dt.timedelta(hours=1)
    turn = add_turn(somebody, question=question, completed_at=ago, **fields)
    with tenant_scope(somebody.tenant.id):
        Turn.objects.filter(id=turn.id).update(created_at=ago)
        Session.objects.filter(id=turn.session_id).update(last_turn_at=timezone.now())
    return turn


def serve_version(somebody: Somebody, engine: FakeEngine) -> AdapterVersion:
    """Make a version live and have the engine hold it."""
    version = add_version(somebody.policy)
    with system_scope("test"):
        desired = DesiredAdapter.objects.create(
            tenant=somebody.tenant, served_name=version.served_name, path="x", sha256="x", rank=16, probe=[]
        )
        LoadedAdapter.objects.create(
            tenant=somebody.tenant,
            engine=Engine.objects.get(),
            adapter=desired,
            state=LoadState.PROBED,
            boot_id="1",
        )
    engine.adapters[version.served_name] = "x"
    return version


def shadows(somebody: Somebody) -> list[Turn]:
    with tenant_scope(somebody.tenant.id):
        return list(
            Turn.objects.filter(kind=TurnKind.SHADOW).select_related("sample", "session").order_by("id")
        )


def test_replies_become_turns_samples_and_a_step(somebody: Somebody, engine: FakeEngine) -> None:
    preference = want(somebody)
    for question in ("What is rain?", "What is snow?"):
        ask(somebody, question)

    shadow.look()

    turns = shadows(somebody)
    assert len(turns) == 8
    assert {turn.session_id for turn in turns} == {turns[0].session_id}
    assert (turns[0].session.kind, turns[0].session.user_id) == (TurnKind.SHADOW, somebody.user.id)
    asked = {turn.messages[-1]["content"] for turn in turns}
    assert {"What is rain?", "What is snow?"} < asked
    assert len(asked) == FEW
    for turn in turns:
        question = turn.messages[-1]["content"]
        assert turn.prompt_ids == chatml(("user", question))
        assert turn.memory is None
        assert (turn.state, turn.sampling["temperature"], turn.version_id) == (TurnState.COMPLETE, 0.7, None)
        sample = turn.sample
        assert (sample.source, sample.state, sample.reward) == ("shadow", SampleState.READY, None)
        assert sample.hints == [
            {
                "text": WISH,
                "prompt_ids": chatml(("user", f"{question}\n\n{WISH}")),
                "preferences": [{"id": str(preference.id), "revision": 1}],
            }
        ]
    # the engine saw what the turns say, and nothing of the hint
    assert sorted(request.input_ids for request in engine.requests) == sorted(
        turn.prompt_ids for turn in turns
    )
    with tenant_scope(somebody.tenant.id):
        assert TrainingRun.objects.count() == 1
        assert tokens_today(somebody.policy) == sum(len(turn.output_ids) for turn in turns)
        assert make_sample(turn_id=turns[0].id) is None
    shadow.look()
    assert len(shadows(somebody)) == 8
    assert wave(somebody) == "a step is under way"


def test_what_a_lesson_is_measured_by_is_measured_while_its_first_step_is_under_way(
    somebody: Somebody, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    want(somebody)
    runs: list[int] = []
    monkeypatch.setattr(shadow.yardstick, "prepare", lambda **_: runs.append(TrainingRun.objects.count()))
    Engine.objects.update(state=EngineState.STARTING)
    shadow.look()
    assert runs == []  # no step, no yardstick

    Engine.objects.update(state=EngineState.READY)
    shadow.look()
    assert runs == [1]
    shadow.look()  # interrupted, it is asked for again
    assert runs == [1, 1]
    with tenant_scope(somebody.tenant.id):
        TrainingRun.objects.update(state="failed", finished_at=timezone.now())
        Lesson.objects.update(state="plateau", reason="no more")
    shadow.look()
    assert runs == [1, 1]


def test_what_people_said_is_trained_on_before_shadow_replies_make_it_too_old(
    somebody: Somebody, engine: FakeEngine
) -> None:
    want(somebody)
    serve_version(somebody, engine)
    (own,) = add_samples(somebody, 1)  # of the bare base, one step back
    with tenant_scope(somebody.tenant.id):
        shadow.look()
        assert {turn.sample.source for turn in shadows(somebody)} == {"shadow"}
        assert len(shadows(somebody)) == 8  # it takes no place of theirs
        assert TrainingRun.objects.get().trigger == "threshold"
        TrainingRun.objects.all().delete()
        Turn.objects.filter(kind=TurnKind.SHADOW).delete()
        somebody.policy.config = {"max_staleness": 1}
        somebody.policy.save()
    shadow.look()
    assert shadows(somebody) == []
    with tenant_scope(somebody.tenant.id):
        run = TrainingRun.objects.get()
        taken = claim_run(run_id=run.pk)
        assert taken is not None
        assert (run.trigger, [sample.pk for sample in taken.samples]) == ("clock", [own.pk])
    assert wave(somebody) == "a step is under way"


def test_a_reply_names_whose_question_it_repeats_and_is_not_kept_without_it(
    somebody: Somebody, engine: FakeEngine
) -> None:
    want(somebody)
    rain, snow = ask(somebody, "What is rain?"), ask(somebody, "What is snow?")
    planned = wave(somebody)
    assert isinstance(planned, Wave)
    assert {one.asked_in for one in planned.questions} == {rain.id, snow.id, None}

    def deleted_meanwhile() -> bool:
        with tenant_scope(somebody.tenant.id):
            Session.objects.filter(pk=snow.session_id).delete()
        return True

    with tenant_scope(somebody.tenant.id):
        made = roll_out(planned, room=deleted_meanwhile)
    turns = shadows(somebody)
    assert len(turns) == made == 7
    assert {(turn.messages[-1]["content"], turn.repeats_id) for turn in turns if turn.repeats_id} == {
        ("What is rain?", rain.id)
    }
    assert "What is snow?" not in {turn.messages[-1]["content"] for turn in turns}
    with tenant_scope(somebody.tenant.id):
        Turn.objects.get(pk=rain.id).delete()
    assert len(shadows(somebody)) == 6


def _deletes_the_session(somebody: Somebody, said: Turn) -> None:
    Session.objects.filter(pk=said.session_id).delete()


def _has_the_session_deleted(somebody: Somebody, said: Turn) -> None:
    erasure = request_erasure(
        tenant_id=somebody.tenant.id, meant=Meant(Subject.SESSION, said.session_id), actor="test"
    )
    assert erase(erasure_id=erasure.pk) == Step.DONE


def _deletes_the_entry(somebody: Somebody, said: Turn) -> None:
    row = Preference.objects.get(evidence__turn=said)
    services.delete_preference(preference_id=row.pk, user_id=somebody.user.id, actor="test")


def _words_it_anew(somebody: Somebody, said: Turn) -> None:
    row = Preference.objects.get(evidence__turn=said)
    services.edit_preference(
        preference_id=row.pk, user_id=somebody.user.id, text="Answer at length.", pinned=None, actor="test"
    )


def _opts_out(somebody: Somebody, said: Turn) -> None:
    opt_out(tenant_id=somebody.tenant.id, actor="test", user_id=somebody.user.id)


@pytest.mark.parametrize(
    "change",
    [_deletes_the_session, _has_the_session_deleted, _deletes_the_entry, _words_it_anew, _opts_out],
)
def test_what_is_taken_back_while_replies_are_written_is_not_stored(
    somebody: Somebody, engine: FakeEngine, change: Callable[[Somebody, Turn], None]
) -> None:
    """Neutral questions outlive every session:
    what was taught with them must not come after the deletion that is done."""
    said = hear(somebody)
    planned = wave(somebody)
    assert isinstance(planned, Wave)
    assert None in {one.asked_in for one in planned.questions}
    with tenant_scope(somebody.tenant.id):
        changes = iter([lambda: change(somebody, said)])

        def meanwhile() -> bool:
            next(changes, lambda: None)()
            return True

        assert roll_out(planned, room=meanwhile) == 0
        assert next(changes, None) is None
        assert Sample.objects.count() == TrainingRun.objects.count() == 0
        assert Session.objects.filter(kind=TurnKind.SHADOW).count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_deletion_waits_for_replies_that_are_being_stored_and_takes_them(
    somebody: Somebody, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = hear(somebody)
    planned = wave(somebody)
    assert isinstance(planned, Wave)
    real, ends = rollouts.still_stands, []

    def delete_it() -> None:
        try:
            with tenant_scope(somebody.tenant.id):
                _has_the_session_deleted(somebody, said)
                ends.append(Sample.objects.count())
        finally:
            connection.close()

    deletion = threading.Thread(target=delete_it)

    def still_stands(policy: Policy, stands: Standing) -> bool:
        found = real(policy, stands)
        deletion.start()
        wait_for_a_lock()
        return found

    monkeypatch.setattr(rollouts, "still_stands", still_stands)
    with tenant_scope(somebody.tenant.id):
        assert roll_out(planned, room=lambda: True) == 8
    deletion.join()
    assert ends == [0]


def test_the_live_version_answers(somebody: Somebody, engine: FakeEngine) -> None:
    want(somebody)
    version = serve_version(somebody, engine)
    shadow.look()
    assert {request.adapter for request in engine.requests} == {version.served_name}
    assert {turn.version_id for turn in shadows(somebody)} == {version.id}


def test_whoever_asks_comes_first_and_at_once(somebody: Somebody, engine: FakeEngine) -> None:
    want(somebody)
    engine.hold = threading.Event()  # replies never end by themselves
    engine.reply = lambda _: (Token(100, "a"), Token(101, "b"), Token(END_OF_TURN, ""))
    other = add_somebody("other")
    looks = 0

    def room() -> int:
        nonlocal looks
        looks += 1
        if looks == 3:  # somebody of another tenant asks, while they are being written
            turn = add_turn(other, state=TurnState.PENDING, completed_at=None, reply=None)
            assert turn.state == TurnState.PENDING
        return shadow.room_beside_people()

    with tenant_scope(somebody.tenant.id):
        planned = next_wave(somebody.policy)
        assert isinstance(planned, Wave)
        from apps.learning.shadow.rollouts import roll_out

        assert roll_out(planned, room=room) == 0
    engine.wait_for(lambda: all(request.aborted for request in engine.requests))
    turns = shadows(somebody)
    assert {(turn.state, turn.sample.state, turn.sample.reason) for turn in turns} == {
        (TurnState.ABORTED, SampleState.INELIGIBLE, "aborted")
    }
    asked = len(engine.requests)
    shadow.look()  # still being answered
    assert len(engine.requests) == asked


def test_nothing_is_asked_while_somebody_is_answered(somebody: Somebody, engine: FakeEngine) -> None:
    want(somebody)
    add_turn(add_somebody("other"), state=TurnState.PENDING, completed_at=None, reply=None)
    shadow.look()
    assert engine.requests == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"shadow": False}, "shadow rollouts are switched off"),
        ({"shadow_tokens_per_day": 0}, "the budget of 0 tokens a day is used up"),
    ],
)
def test_switches_and_budgets(somebody: Somebody, change: dict[str, Any], why: str) -> None:
    want(somebody)
    with tenant_scope(somebody.tenant.id):
        services.set_setting(policy=somebody.policy, actor="test", **change)
    assert wave(somebody) == why


def test_the_tenants_hours(somebody: Somebody) -> None:
    want(somebody)
    hour = timezone.now().hour
    for begin, end, open_ in ((hour, (hour + 2) % 24, True), ((hour + 2) % 24, hour, False)):
        with tenant_scope(somebody.tenant.id):
            services.set_setting(
                policy=somebody.policy, actor="test", shadow_from_hour=begin, shadow_until_hour=end
            )
        assert isinstance(wave(somebody), Wave) is open_


def test_who_trains_on_nothing_is_not_taught(somebody: Somebody) -> None:
    want(somebody)
    with tenant_scope(somebody.tenant.id):
        somebody.policy.training_enabled = False
        somebody.policy.save()
    assert wave(somebody) == "training is switched off"
    with system_scope("look"):
        assert candidates() == []
    with tenant_scope(somebody.tenant.id):
        somebody.policy.training_enabled = True
        somebody.policy.save()
        pause(policy_id=somebody.policy.id, actor="test", reason="drift")
    assert wave(somebody) == "training is paused: drift"


def test_who_waited_longest_is_taught_first_and_who_never_was_before_them(db: None) -> None:
    ago = timezone.now() - dt.timedelta(hours=3)
    made = []
    for number in range(4):
        one = add_somebody(f"tenant-{number}")
        want(one)
        made.append(one.policy.pk)
        if number in (0, 1):
            assert isinstance(wave(one), Wave)  # makes its lesson
            with tenant_scope(one.tenant.id):
                Lesson.objects.update(changed_at=ago - number * dt.timedelta(hours=1))
    with system_scope("look"):
        assert [policy for _, policy in candidates()] == [made[2], made[3], made[1], made[0]]


def test_only_who_is_told_or_taught_something_and_may_learn_is_a_candidate(db: None) -> None:
    told, taught, over, deleted, off, tenant_off = (add_somebody(name) for name in "abcdef")
    for one in (told, off, tenant_off, deleted):
        want(one)
    with tenant_scope(deleted.tenant.id):
        row = Preference.objects.get()
        services.delete_preference(preference_id=row.pk, user_id=None, actor="test")
    for one, state in ((taught, LessonState.TEACHING), (over, LessonState.HELD)):
        with tenant_scope(one.tenant.id):
            Lesson.objects.create(policy=one.policy, user=one.user, key="1" * 64, state=state)
    with tenant_scope(off.tenant.id):
        Policy.objects.update(training_enabled=False)
    with system_scope("test"):
        Tenant.objects.filter(pk=tenant_off.tenant.pk).update(training_enabled=False)
        found = candidates()
    assert set(found) == {(one.tenant.pk, one.policy.pk) for one in (told, taught)}


def test_what_one_of_several_people_wants_is_told_and_not_taught(somebody: Somebody) -> None:
    want(somebody)
    want(somebody, "Answer in French.", end_user="bob")
    assert wave(somebody) == "several people want things of this policy: they are told, not taught"


def test_a_policy_that_serves_others_too_is_not_bent_to_one(somebody: Somebody) -> None:
    want(somebody)
    assert isinstance(wave(somebody), Wave)
    with tenant_scope(somebody.tenant.id):
        bob = EndUser.objects.create(external_id="bob")
        Session.objects.create(
            user=somebody.user, policy=somebody.policy, end_user=bob, last_turn_at=timezone.now()
        )
    assert wave(somebody) == "the policy serves other people too: what one wants is told, not taught"


def test_only_single_questions_of_that_person_are_asked(somebody: Somebody) -> None:
    first = ask(somebody, "What is rain?")
    ask(somebody, "what is RAIN")  # the same
    ask(somebody, "And then?", parent=first)
    ask(somebody, "With tools", tools=[{"type": "function"}])
    ask(somebody, "Aside", side=True)
    ask(somebody, "Measured", kind=TurnKind.EVALUATION)
    ask(somebody, "measured!")
    ask(somebody, neutral().choosing[0])
    system = {"role": "system", "content": "Be kind."}
    ask(somebody, "x", messages=[system, {"role": "user", "content": "What is hail?"}])
    ask(add_somebody(tenant=somebody.tenant), "Another's question?")

    with tenant_scope(somebody.tenant.id):
        found = teaching_questions(somebody.policy, person(somebody))
    stored = [question.messages for question in found if question.stored]
    assert stored == [
        (system, {"role": "user", "content": "What is hail?"}),
        ({"role": "user", "content": "what is RAIN"},),
    ]
    assert len(found) == FEW
    assert {question.messages[0]["content"] for question in found if not question.stored} == {"Be kind."}
    assert not {question.messages[-1]["content"] for question in found} & set(neutral().choosing)


def test_a_lesson_ends_when_something_else_is_wanted(somebody: Somebody, engine: FakeEngine) -> None:
    first = want(somebody)
    shadow.look()
    with tenant_scope(somebody.tenant.id):
        TrainingRun.objects.all().delete()
        services.delete_preference(preference_id=first.id, user_id=somebody.user.id, actor="test")
    want(somebody, "Answer in French.")
    shadow.look()

    with tenant_scope(somebody.tenant.id):
        states = list(Lesson.objects.order_by("created_at").values_list("state", flat=True))
        samples = list(Sample.objects.filter(source="shadow").values_list("state", "reason").distinct())
    assert states == [LessonState.ENDED, LessonState.TEACHING]
    assert ("dropped", "no longer wanted") in samples
    assert ("ready", "") in samples


def test_what_is_learned_already_is_taught_along(somebody: Somebody) -> None:
    learned, told = want(somebody), want(somebody, "Answer in French.")
    version = add_version(somebody.policy)
    with tenant_scope(somebody.tenant.id):
        services.retire(entries=[said(learned)], version=version, reason="test")
    planned = wave(somebody)
    assert isinstance(planned, Wave)
    assert planned.stands.hint == f"{WISH} Answer in French."
    with tenant_scope(somebody.tenant.id):
        services.retire(entries=[said(told)], version=version, reason="test")
    assert isinstance(wave(somebody), Wave)  # until no version is better
    with tenant_scope(somebody.tenant.id):
        Lesson.objects.filter(state=LessonState.TEACHING).update(state=LessonState.PLATEAU)
    assert wave(somebody) == "the weights hold all that is wanted"


def test_what_left_the_prompt_is_taught_until_its_lesson_is_over(
    somebody: Somebody, engine: FakeEngine
) -> None:
    preference = want(somebody)
    version = serve_version(somebody, engine)
    wave(somebody)  # makes the lesson
    with tenant_scope(somebody.tenant.id):
        services.retire(entries=[{"id": str(preference.id), "revision": 1}], version=version, reason="held")
    shadow.look()
    assert len(shadows(somebody)) == 8

    with tenant_scope(somebody.tenant.id):
        TrainingRun.objects.update(state="failed", finished_at=timezone.now())
        Sample.objects.update(state=SampleState.DROPPED, reason="test")
        Lesson.objects.update(state=LessonState.HELD)
    shadow.look()
    assert len(shadows(somebody)) == 8


def test_one_lesson_at_a_time(somebody: Somebody) -> None:
    want(somebody)
    with tenant_scope(somebody.tenant.id):
        stands = standing(somebody.policy)
        assert isinstance(stands, Standing)
        assert current_lesson(somebody.policy, stands).pk == current_lesson(somebody.policy, stands).pk
        with pytest.raises(IntegrityError), transaction.atomic():
            Lesson.objects.create(policy=somebody.policy, user=somebody.user, key="1" * 64)


def test_a_reply_that_is_no_text_is_a_turn_too(somebody: Somebody, engine: FakeEngine) -> None:
    """A model that is not trained yet writes any byte; Postgres stores no NUL in JSON."""
    want(somebody)
    engine.reply = lambda _: (Token(100, "a\x00"), Token(101, "b"), Token(END_OF_TURN, ""))
    shadow.look()
    assert {turn.reply["content"] for turn in shadows(somebody)} == {"a\ufffdb"}


def test_one_policys_fault_does_not_keep_the_others_waiting(
    somebody: Somebody, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    want(somebody)
    other = add_somebody("other")
    want(other)
    first = somebody.policy.pk
    with system_scope("look"):
        assert next(policy for _, policy in candidates()) == first
    stands_as_ever = shadow.standing

    def broken(policy: Policy) -> Standing | str:
        if policy.pk == first:
            raise ValueError("rows that make no sense")
        return stands_as_ever(policy)

    monkeypatch.setattr(shadow, "standing", broken)
    shadow.look()
    assert (len(shadows(somebody)), len(shadows(other))) == (0, 8)


def test_an_engine_that_is_away_is_waited_for(somebody: Somebody, engine: FakeEngine) -> None:
    want(somebody)
    engine.stop()
    shadow.look()
    assert shadows(somebody) == []
