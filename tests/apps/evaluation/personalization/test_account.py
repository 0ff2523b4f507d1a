"""What a platform did for a policy, as the report of told once says it."""

import datetime as dt

from django.utils import timezone

from apps.conversations.models import TurnKind, TurnState
from apps.evaluation.personalization.account import account_of
from apps.learning.models import Sample, TrainingRun
from apps.memory import services
from apps.memory.lessons import Standing, current_lesson, standing
from kernel.tenancy import tenant_scope
from tests.apps.learning.ledger import add_turn
from tests.tenants import add_somebody, add_version


def test_nothing_was_done(db: None) -> None:
    somebody = add_somebody()
    with tenant_scope(somebody.tenant.id):
        account = account_of(somebody.policy)
    assert account["shadow"] == {
        "replies": 0,
        "tokens": 0,
        "given_up": 0,
        "samples": {"live": 0, "shadow": 0},
    }
    assert account["steps"] == {"by_state": {}, "waiting_s": None, "working_s": None, "choosing_s": None}
    assert (account["lesson"]["state"], account["lesson"]["course"]) == ("", [])


def test_replies_steps_and_the_lesson_are_counted(db: None) -> None:
    somebody = add_somebody()
    for state in (TurnState.COMPLETE, TurnState.COMPLETE, TurnState.ABORTED):
        turn = add_turn(
            somebody, kind=TurnKind.SHADOW, state=state, output_ids=[1, 2, 3], output_logprobs=[-1.0] * 3
        )
        with tenant_scope(somebody.tenant.id):
            Sample.objects.create(policy=somebody.policy, turn=turn, source="shadow", state="ready")
    version = add_version(somebody.policy, 1)
    now = timezone.now()
    with tenant_scope(somebody.tenant.id):
        run = TrainingRun.objects.create(
            id=version.run_id,
            policy=somebody.policy,
            trigger="threshold",
            state="succeeded",
            version=version,
            started_at=now,
            finished_at=now + dt.timedelta(seconds=12),
        )
        TrainingRun.objects.filter(pk=run.pk).update(created_at=now - dt.timedelta(seconds=3))
        type(version).objects.filter(pk=version.pk).update(
            created_at=now, ready_at=now + dt.timedelta(seconds=9)
        )
        services.add_preference(
            policy_id=somebody.policy.id,
            user_id=somebody.user.id,
            end_user=None,
            text="Be brief.",
            actor="test",
        )
        stands = standing(somebody.policy)
        assert isinstance(stands, Standing)
        lesson = current_lesson(somebody.policy, stands)
        lesson.figures = {
            "yardstick": {"told": {"passes": 14}, "untold": {"passes": 1}},
            "course": [
                {"version": 1, "outcome": "better", "passes": 5, "of": 8, "closeness": -1.0, "general": 16}
            ],
        }
        lesson.save()
        account = account_of(somebody.policy)
    assert account["shadow"] == {
        "replies": 3,
        "tokens": 9,
        "given_up": 1,
        "samples": {"live": 0, "shadow": 3},
    }
    assert account["steps"] == {
        "by_state": {"succeeded": 1},
        "waiting_s": 3.0,
        "working_s": 12.0,
        "choosing_s": 9.0,
    }
    assert (account["lesson"]["state"], account["lesson"]["told_passes"]) == ("teaching", 14)
    assert account["lesson"]["course"] == [
        {
            "version": 1,
            "outcome": "better",
            "passes": 5,
            "of": 8,
            "closeness": -1.0,
            "k3": None,
            "mean_tokens": None,
        }
    ]
