"""One sample per turn: what it is worth, or the stated reason why nothing."""

from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from apps.conversations.models import Feedback, Turn, TurnKind, TurnState
from apps.conversations.services import give_feedback
from apps.judging.models import JudgementState
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from apps.learning.samples import make_sample, set_aside
from apps.learning.shadow.questions import neutral
from kernel.tenancy import tenant_scope
from tests.apps.learning.ledger import HINT, add_turn, runs_of, settle, states_of, unsent
from tests.chat_model import END, chatml, ids_of
from tests.tenants import Somebody, add_version

LONG = ids_of("A comet is a ball of ice.")


def sample_of(turn: Turn) -> Sample | None:
    with tenant_scope(turn.tenant_id):
        return make_sample(turn_id=turn.id)


def given(turn: Turn) -> Sample:
    sample = sample_of(turn)
    assert sample is not None
    return sample


def test_a_bad_reply_with_a_hint_is_a_sample_whose_hint_reads_as_the_prompt_would(somebody: Somebody) -> None:
    version = add_version(somebody.policy)
    turn = add_turn(somebody, question="What is a comet?", version=version)
    settle(turn)
    sample = given(turn)
    assert (sample.state, sample.reason, sample.reward) == (SampleState.READY, "", -1.0)
    assert (sample.version_id, sample.source, sample.policy_id) == (version.id, "live", somebody.policy.id)
    assert sample.hints == [{"text": HINT, "prompt_ids": chatml(("user", f"What is a comet?\n\n{HINT}"))}]


def test_a_good_reply_is_a_sample_with_its_reward_alone(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    settle(turn, reward=1, hints=())
    sample = given(turn)
    assert (sample.state, sample.reward, sample.hints) == (SampleState.READY, 1.0, [])


def test_made_twice_it_is_one_row_that_follows_what_is_said_until_it_is_taken(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    settle(turn)
    first = given(turn)
    with tenant_scope(somebody.tenant.id):
        Feedback.objects.create(turn=turn, user=somebody.user, score=1)
    second = given(turn)
    assert (second.id, second.reward, second.hints) == (first.id, 1.0, [])
    with tenant_scope(somebody.tenant.id):
        run = TrainingRun.objects.create(policy=somebody.policy, state=RunState.RUNNING, trigger="test")
        Sample.objects.update(state=SampleState.CONSUMED, run=run, consumed_at=timezone.now())
        Feedback.objects.create(turn=turn, user=somebody.user, score=-1)
    third = given(turn)
    assert (third.id, third.reward, third.state) == (first.id, 1.0, SampleState.CONSUMED)


def test_what_is_said_while_a_step_has_the_sample_is_looked_at_again(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    settle(turn)
    given(turn)
    with tenant_scope(somebody.tenant.id):
        run = TrainingRun.objects.create(policy=somebody.policy, state=RunState.RUNNING, trigger="test")
        Sample.objects.update(state=SampleState.CLAIMED, run=run)
    assert given(turn).state == SampleState.CLAIMED
    assert len(unsent("workers.samples.make_sample")) == 1


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"kind": TurnKind.EVALUATION}, "evaluation"),
        ({"side": True}, "side turn"),
        ({"state": TurnState.ABORTED}, "aborted"),
        ({"state": TurnState.FAILED}, "failed"),
        ({"output_ids": [], "output_logprobs": []}, "empty reply"),
        ({"output_logprobs": [-0.5] * 3}, "misaligned: 3 log-probabilities for 35 tokens"),
        ({"output_logprobs": []}, "misaligned: 0 log-probabilities for 35 tokens"),
        ({"prompt_ids": []}, "misaligned: no prompt tokens"),
        ({"output_ids": [7] * 40, "output_logprobs": [-0.5] * 40}, "degenerate: one token 40 times in a row"),
        (
            {"output_ids": LONG * 6, "output_logprobs": [-0.5] * len(LONG) * 6},
            "degenerate: 25 tokens repeated through 150 of 150",
        ),
    ],
)
def test_a_turn_that_may_never_teach_says_why(
    somebody: Somebody, fields: dict[str, Any], reason: str
) -> None:
    turn = add_turn(somebody, **fields)
    settle(turn)
    sample = given(turn)
    assert (sample.state, sample.reason, sample.reward, sample.hints) == (
        SampleState.INELIGIBLE,
        reason,
        None,
        [],
    )


@pytest.mark.parametrize(
    "asked",
    [
        [("user", neutral().choosing[0])],
        [("system", "Be kind."), ("user", f" {neutral().choosing[1].upper()} ")],
        [("user", neutral().choosing[0]), ("assistant", "A storm."), ("user", "Shorter, please.")],
    ],
)
def test_what_versions_are_chosen_by_is_not_learned_from_whoever_asks_it(
    somebody: Somebody, asked: list[tuple[str, str]]
) -> None:
    turn = add_turn(somebody, messages=[{"role": role, "content": text} for role, text in asked])
    settle(turn)
    sample = given(turn)
    assert (sample.state, sample.reason, sample.reward, sample.hints) == (
        SampleState.INELIGIBLE,
        "choosing question",
        None,
        [],
    )


def test_what_only_speaks_of_a_choosing_question_is_learned_from(somebody: Somebody) -> None:
    reply = {"role": "assistant", "content": neutral().choosing[0]}
    asked = [{"role": "user", "content": "Ask me something."}, reply, {"role": "user", "content": "Why?"}]
    turn = add_turn(somebody, messages=asked)
    settle(turn)
    assert given(turn).state == SampleState.READY


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"finish_reason": "length"}, "truncated"),
        ({"sampling": {"temperature": 0}}, "greedy"),
        ({"sampling": {"temperature": 0.7, "top_p": 0.9}}, "distorted: sampled with top_p"),
        (
            {"sampling": {"temperature": 0.7, "top_k": 40, "presence_penalty": 1.0}},
            "distorted: sampled with presence_penalty, top_k",
        ),
    ],
)
def test_a_turn_that_cannot_enter_a_ratio_is_distilled_or_left_out(
    somebody: Somebody, fields: dict[str, Any], why: str
) -> None:
    hinted, plain = add_turn(somebody, **fields), add_turn(somebody, **fields)
    settle(hinted)
    settle(plain, hints=())
    distilled, left_out = given(hinted), given(plain)
    assert (distilled.state, distilled.reward, len(distilled.hints)) == (SampleState.READY, None, 1)
    assert distilled.reason == f"{why}: distilled only"
    assert (left_out.state, left_out.reason) == (SampleState.INELIGIBLE, why)


@pytest.mark.parametrize(
    "sampling", [{"temperature": 0.7, "top_p": 1.0, "top_k": -1, "presence_penalty": 0}, {}]
)
def test_harmless_sampling_parameters_leave_the_reward(somebody: Somebody, sampling: dict[str, Any]) -> None:
    turn = add_turn(somebody, sampling=sampling)
    settle(turn)
    assert given(turn).reward == -1.0


def test_what_was_said_of_a_changed_reply_teaches_nothing_but_a_thumb_does(somebody: Somebody) -> None:
    turn = add_turn(somebody, reply_edited=True)
    sample = given(turn)
    assert (sample.state, sample.reason) == (SampleState.INELIGIBLE, "edited reply")

    give_feedback(
        tenant_id=somebody.tenant.id, user_id=somebody.user.id, turn_id=turn.id, score=-1, correction=""
    )
    sample = given(turn)
    assert (sample.state, sample.reward) == (SampleState.READY, -1)


def test_no_signal(somebody: Somebody) -> None:
    neutral, failed = add_turn(somebody), add_turn(somebody)
    settle(neutral, reward=0, hints=())
    judgement = settle(failed, reward=0, hints=())
    with tenant_scope(somebody.tenant.id):
        judgement.state, judgement.reason, judgement.reward = JudgementState.FAILED, "too late", None
        judgement.save()
    assert given(neutral).reason == "no signal"
    assert given(failed).reason == "no signal: the judge failed: too late"


def test_a_neutral_verdict_with_a_hint_teaches_by_the_hint_alone(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    settle(turn, reward=0)
    sample = given(turn)
    assert (sample.state, sample.reward, len(sample.hints)) == (SampleState.READY, None, 1)


def test_before_anything_is_said_there_is_no_row_and_after_the_session_the_reason(somebody: Somebody) -> None:
    waiting = add_turn(somebody)
    assert sample_of(waiting) is None
    last = add_turn(somebody, next_state=None, next_state_at=None)
    assert sample_of(last) is None
    with tenant_scope(somebody.tenant.id):
        last.session.idle_at = timezone.now()
        last.session.save()
    assert given(last).reason == "no next state"
    # the conversation goes on after all
    with tenant_scope(somebody.tenant.id):
        Turn.objects.filter(id=last.id).update(
            next_state=[{"role": "user", "content": "Too long."}], next_state_at=timezone.now()
        )
    settle(last)
    assert given(last).state == SampleState.READY


def test_a_thumb_outranks_the_judge_and_a_correction_is_the_first_hint(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    settle(turn, reward=1, hints=())
    with tenant_scope(somebody.tenant.id):
        Feedback.objects.create(
            turn=turn, user=somebody.user, score=-1, correction="Say it in French, please."
        )
    sample = given(turn)
    assert sample.reward == -1.0
    assert [hint["text"] for hint in sample.hints] == ["Say it in French, please."]


def test_opted_out(somebody: Somebody) -> None:
    one, other = add_turn(somebody), add_turn(somebody)
    settle(one)
    settle(other)
    with tenant_scope(somebody.tenant.id):
        somebody.tenant.training_enabled = False
        somebody.tenant.save()
        assert given(one).reason == "opted out"
        somebody.tenant.training_enabled = True
        somebody.tenant.save()
        somebody.policy.training_enabled = False
        somebody.policy.save()
        assert given(other).reason == "opted out"
    assert runs_of(somebody) == []


def test_a_hint_that_does_not_fit_the_context_teaches_nothing(somebody: Somebody, settings: Settings) -> None:
    settings.CONTEXT_LENGTH = 60
    turn = add_turn(somebody)
    settle(turn, reward=0)
    assert given(turn).reason == "no signal: the hint does not fit into the prompt"


def test_the_sample_that_fills_a_batch_starts_the_run(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        somebody.policy.config = {"batch_size": 3}
        somebody.policy.save()
    for count in range(1, 8):
        turn = add_turn(somebody)
        settle(turn)
        given(turn)
        assert len(runs_of(somebody)) == (1 if count >= 3 else 0)
    assert [(run.state, run.trigger) for run in runs_of(somebody)] == [("queued", "threshold")]
    assert [message.kwargs["run_id"] for message in unsent("workers.training.train")] == [
        str(runs_of(somebody)[0].id)
    ]
    assert states_of(somebody) == {"ready": 7}


def test_what_cannot_be_made_is_set_aside_with_the_reason(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    with tenant_scope(somebody.tenant.id):
        set_aside(turn_id=turn.id, reason="error: KeyError: 'x'")
        set_aside(turn_id=turn.id, reason="error: KeyError: 'x'")
        sample = Sample.objects.get()
    assert (sample.state, sample.reason) == (SampleState.INELIGIBLE, "error: KeyError: 'x'")


def test_the_reply_of_the_ledger_is_what_the_tests_say_it_is(somebody: Somebody) -> None:
    assert add_turn(somebody).output_ids[-1] == END
