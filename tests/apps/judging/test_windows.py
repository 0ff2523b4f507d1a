"""A window is judged once more beside what was said: resumable, once, the newest verdict counting."""

import datetime as dt
import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from apps.conversations.models import Turn
from apps.judging import services
from apps.judging.models import Judgement, JudgementState, Rejudging, RejudgingState
from apps.judging.selectors import verdict
from apps.judging.services.windows import AT_ONCE, ask_for_stalled, progress_of
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from apps.learning.opting_out import opt_out
from apps.learning.samples import make_sample
from kernel.errors import InvalidInput
from kernel.tenancy import tenant_scope
from tests.apps.judging.told import Told
from tests.apps.learning.ledger import add_turn, unsent
from tests.tenants import Somebody

HOUR = dt.timedelta(hours=1)


def judged_turns(somebody: Somebody, count: int) -> list[Turn]:
    turns = [add_turn(somebody) for _ in range(count)]
    with tenant_scope(somebody.tenant.id):
        for turn in turns:
            services.judge(turn_id=turn.id, backend=Told(scores=(1, 1, 1), hints=()))
    return turns


def ask(somebody: Somebody, backend: Told, **window: dt.datetime) -> Rejudging:
    now = timezone.now().replace(minute=0, second=0, microsecond=0)
    return services.rejudge_window(
        policy=somebody.policy,
        since=window.get("since", now - HOUR),
        until=window.get("until", now + 2 * HOUR),
        actor="user:1",
        backend=backend,
    )


def test_old_verdicts_stay_and_the_newest_decides_for_what_no_step_has_taken(somebody: Somebody) -> None:
    free, taken = judged_turns(somebody, 2)
    harsh = Told(scores=(-1, -1, -1), hints=())
    with tenant_scope(somebody.tenant.id):
        for turn in (free, taken):
            make_sample(turn_id=turn.id)
        run = TrainingRun.objects.create(policy=somebody.policy, state=RunState.RUNNING, trigger="test")
        Sample.objects.filter(turn=taken).update(
            state=SampleState.CONSUMED, run=run, consumed_at=timezone.now()
        )
        services.write_rubric(tenant_id=somebody.tenant.id, policy=None, text="Be harsh.", actor="user:1")
        rejudging = ask(somebody, harsh)
        assert [m.kwargs["rejudging_id"] for m in unsent("workers.judging.rejudge")] == [str(rejudging.id)]
        assert services.rejudge_some(rejudging_id=rejudging.id, backend=harsh) is False
        for turn in (free, taken):
            make_sample(turn_id=turn.id)
            said = verdict(turn.id)
            assert said is not None
            assert said.reward == -1
        rewards = list(
            Judgement.objects.filter(turn=free).order_by("created_at").values_list("reward", flat=True)
        )
        assert rewards == [1, -1]
        assert Sample.objects.get(turn=free).reward == -1.0
        assert Sample.objects.get(turn=taken).reward == 1.0
        rejudging.refresh_from_db()
        assert rejudging.state == RejudgingState.DONE
        progress = progress_of(rejudging)
        assert (progress.total, progress.settled, progress.dead, progress.left) == (2, 2, 0, 0)


def test_it_goes_on_where_it_was_and_judges_each_turn_once(somebody: Somebody) -> None:
    judged_turns(somebody, AT_ONCE + 3)
    backend = Told(name="second")
    with tenant_scope(somebody.tenant.id):
        rejudging = ask(somebody, backend)
        assert ask(somebody, backend).id == rejudging.id
        assert services.rejudge_some(rejudging_id=rejudging.id, backend=backend) is True
        assert progress_of(rejudging).left == 3
        assert services.rejudge_some(rejudging_id=rejudging.id, backend=backend) is False
        assert services.rejudge_some(rejudging_id=rejudging.id, backend=backend) is False
        assert len(backend.asked) == AT_ONCE + 3
        # asked for again, nothing is left to do
        again = ask(somebody, backend)
        assert again.id != rejudging.id
        assert services.rejudge_some(rejudging_id=again.id, backend=backend) is False
        assert len(backend.asked) == AT_ONCE + 3


def test_a_judge_that_is_away_ends_in_dead_letters_that_a_second_asking_revives(somebody: Somebody) -> None:
    judged_turns(somebody, 2)
    away, there = Told(name="second", away=True), Told(name="second")
    with tenant_scope(somebody.tenant.id):
        rejudging = ask(somebody, away)
        goes_on = [services.rejudge_some(rejudging_id=rejudging.id, backend=away) for _ in range(3)]
        assert goes_on == [True, True, False]
        assert progress_of(rejudging).dead == 2
        # an old verdict that is there counts more than a new one that is not
        said = verdict(Judgement.objects.filter(state=JudgementState.FAILED)[0].turn_id)
        assert said is not None
        assert said.reward == 1
        again = ask(somebody, there)
        services.rejudge_some(rejudging_id=again.id, backend=there)
        assert progress_of(again).settled == 2


def test_a_window_has_bounds_and_leaves_out_who_opted_out(somebody: Somebody) -> None:
    judged_turns(somebody, 2)
    now = timezone.now()
    with tenant_scope(somebody.tenant.id):
        with pytest.raises(InvalidInput):
            ask(somebody, Told(), since=now, until=now)
        assert ask(somebody, Told(), since=now - 3 * HOUR, until=now - 2 * HOUR).total == 0
        opt_out(tenant_id=somebody.tenant.id, actor="user:1", user_id=somebody.user.id)
        assert ask(somebody, Told()).total == 0


def test_one_that_stands_still_is_announced_again_and_one_can_be_cancelled(somebody: Somebody) -> None:
    judged_turns(somebody, 1)
    with tenant_scope(somebody.tenant.id):
        rejudging = ask(somebody, Told())
        assert ask_for_stalled(older_than_s=60) == 0
        assert ask_for_stalled(older_than_s=-1) == 1
        services.cancel_rejudging(rejudging_id=rejudging.id, actor="user:1")
        assert services.rejudge_some(rejudging_id=rejudging.id, backend=Told()) is False
        assert ask_for_stalled(older_than_s=-1) == 0


def test_the_command_judges_a_window_and_says_how_far_it_is(somebody: Somebody) -> None:
    judged_turns(somebody, 3)
    out = StringIO()
    since = (timezone.now() - HOUR).isoformat()
    until = (timezone.now() + HOUR).isoformat()
    call_command("rejudge", "default", tenant="acme", since=since, until=until, json=True, stdout=out)
    said = json.loads(out.getvalue())
    assert (said["state"], said["total"], said["settled"], said["dead"]) == ("done", 3, 3, 0)
    with tenant_scope(somebody.tenant.id):
        assert Judgement.objects.filter(judge="cue-deterministic").count() == 3
    out = StringIO()
    call_command("rejudge", "default", tenant="acme", since=since, until=until, stdout=out, stderr=StringIO())
    assert out.getvalue() == "done: 3 of 3 turns judged, 0 dead letters\n"


def test_a_window_leaves_out_what_was_said_of_a_changed_reply_and_so_comes_to_its_end(
    somebody: Somebody,
) -> None:
    (turn,) = judged_turns(somebody, 1)
    add_turn(somebody, reply_edited=True)
    backend = Told(name="second")
    with tenant_scope(somebody.tenant.id):
        rejudging = ask(somebody, backend)
        assert rejudging.total == 1
        assert services.rejudge_some(rejudging_id=rejudging.id, backend=backend) is False
        assert Judgement.objects.get(judge="second").turn_id == turn.id
        rejudging.refresh_from_db()
    assert rejudging.state == RejudgingState.DONE


def test_dead_letters_that_are_revived_behind_a_window_under_way_are_judged_by_it(somebody: Somebody) -> None:
    judged_turns(somebody, AT_ONCE + 1)
    away, there = Told(name="second", away=True), Told(name="second")
    with tenant_scope(somebody.tenant.id):
        rejudging = ask(somebody, away)
        for _ in range(3):  # the first turns end as dead letters, the cursor stands behind them
            assert services.rejudge_some(rejudging_id=rejudging.id, backend=away) is True
        assert (progress_of(rejudging).dead, progress_of(rejudging).left) == (AT_ONCE, 1)
        assert ask(somebody, there).id == rejudging.id
        assert services.rejudge_some(rejudging_id=rejudging.id, backend=there) is True
        assert services.rejudge_some(rejudging_id=rejudging.id, backend=there) is False
        assert progress_of(rejudging).settled == AT_ONCE + 1
