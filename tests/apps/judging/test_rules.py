"""Rubrics are versions, settings have levels, a day's spend has a cap: all of it decided in Postgres."""

import threading

import pytest
from django.db import DatabaseError, connection, transaction
from pytest_django import Settings

from apps.adapters.models import Policy
from apps.conversations.models import Feedback, Turn
from apps.judging import services, spend
from apps.judging.models import Judgement, JudgementState, JudgeSpend, Rubric, Vote
from apps.judging.rules import active_rubric, rules_of
from apps.judging.selectors import verdict
from kernel.errors import Conflict, InvalidInput
from kernel.models import AuditEntry
from kernel.tenancy import tenant_scope
from tests.apps.judging.told import Told
from tests.apps.learning.ledger import add_turn
from tests.tenants import Somebody, add_somebody


def judge(turn: Turn, backend: Told) -> Judgement | None:
    with tenant_scope(turn.tenant_id):
        return services.judge(turn_id=turn.id, backend=backend)


def spent(somebody: Somebody) -> JudgeSpend:
    with tenant_scope(somebody.tenant.id):
        return JudgeSpend.objects.get()


def test_the_newest_rubric_counts_and_a_policys_before_its_tenants(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        tenant, policy = somebody.tenant.id, somebody.policy
        other = Policy.objects.create(name="other", base_model="tiny")
        assert active_rubric(policy) is None
        for text, whose in (("Be kind.", None), ("Be brief.", policy), ("Be kinder.", None)):
            services.write_rubric(tenant_id=tenant, policy=whose, text=text, actor="user:1")
        assert (rules_of(policy).rubric, rules_of(other).rubric) == ("Be brief.", "Be kinder.")
        services.write_rubric(tenant_id=tenant, policy=policy, text="  ", actor="user:1")
        assert (rules_of(policy).rubric, rules_of(other).rubric) == ("Be kinder.", "Be kinder.")
        services.write_rubric(tenant_id=tenant, policy=None, text="", actor="user:1")
        assert (rules_of(policy).rubric, rules_of(policy).rubric_id) == ("", None)
        assert list(Rubric.objects.order_by("number").values_list("number", "text")) == [
            (1, "Be kind."), (2, "Be brief."), (3, "Be kinder."), (4, ""), (5, ""),
        ]  # fmt: skip
        with pytest.raises(InvalidInput) as caught:
            services.write_rubric(tenant_id=tenant, policy=None, text="x" * 4001, actor="user:1")
        assert caught.value.field == "text"
        assert AuditEntry.objects.filter(action="rubric.write").count() == 5


def test_postgres_refuses_to_change_a_rubric(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        services.write_rubric(tenant_id=somebody.tenant.id, policy=None, text="Be kind.", actor="user:1")
        with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
            Rubric.objects.update(text="Be harsh.")
        assert Rubric.objects.get().text == "Be kind."


def test_settings_have_levels_and_bounds(somebody: Somebody, settings: Settings) -> None:
    settings.JUDGE_VOTES, settings.JUDGE_TEMPERATURE = 3, 0.6
    tenant, policy = somebody.tenant.id, somebody.policy
    with tenant_scope(tenant):
        services.change_judging(
            tenant_id=tenant, policy=None, changes={"votes": 5, "daily_tokens": 9}, actor="user:1"
        )
        services.change_judging(tenant_id=tenant, policy=policy, changes={"temperature": 0.2}, actor="user:1")
        rules = rules_of(policy)
        assert (rules.votes, rules.temperature, rules.daily_tokens) == (5, 0.2, 9)
        for changes, whose, field in (
            ({"votes": 0}, None, "votes"),
            ({"votes": 16}, None, "votes"),
            ({"temperature": 2.1}, None, "temperature"),
            ({"personal_data": "perhaps"}, None, "personal_data"),
            ({"daily_tokens": 5}, policy, "daily_tokens"),
            ({"mood": 1}, None, "mood"),
        ):
            with pytest.raises(InvalidInput) as caught:
                services.change_judging(tenant_id=tenant, policy=whose, changes=changes, actor="user:1")
            assert caught.value.field == field
        assert rules_of(policy) == rules


def test_a_verdict_is_told_by_rubric_votes_and_temperature(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    with tenant_scope(somebody.tenant.id):
        rubric = services.write_rubric(
            tenant_id=somebody.tenant.id, policy=somebody.policy, text="Be kind.", actor="user:1"
        )
    judgement = judge(turn, Told(temperature=0.3))
    assert judgement is not None
    assert (judgement.rubric_id, judgement.votes_asked, judgement.temperature) == (rubric.id, 3, 0.3)
    deaf = judge(add_turn(somebody), Told(reads_rubric=False))
    assert deaf is not None
    assert deaf.rubric_id is None
    with tenant_scope(somebody.tenant.id):
        assert set(Vote.objects.values_list("prompt_version", flat=True)) == {"1"}


def test_rules_that_change_after_the_verdict_do_not_judge_again(somebody: Somebody) -> None:
    turn, backend = add_turn(somebody), Told()
    judge(turn, backend)
    with tenant_scope(somebody.tenant.id):
        services.write_rubric(tenant_id=somebody.tenant.id, policy=None, text="Be kind.", actor="user:1")
    assert judge(turn, backend) is None
    assert len(backend.asked) == 1


def test_what_votes_cost_is_booked_and_what_was_set_aside_is_given_back(
    somebody: Somebody, settings: Settings
) -> None:
    settings.JUDGE_PRICE_PROMPT, settings.JUDGE_PRICE_COMPLETION = 2.0, 8.0
    judge(add_turn(somebody), Told(scores=(1, 1, None), most=100))
    day = spent(somebody)
    assert (day.reserved, day.prompt_tokens, day.completion_tokens) == (0, 30, 15)
    assert (day.cost_micros, day.judgements, day.abstained, day.refused) == (180, 1, 1, 0)


def test_over_the_cap_nobody_is_asked_and_the_turn_is_neutral_with_the_reason(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        services.change_judging(
            tenant_id=somebody.tenant.id, policy=None, changes={"daily_tokens": 120}, actor="user:1"
        )
    first, second = add_turn(somebody), add_turn(somebody)
    backend = Told(most=100)
    judge(first, backend)  # costs 45 of 120
    assert judge(second, backend) is None
    assert len(backend.asked) == 1
    assert (spent(somebody).refused, spent(somebody).reserved) == (1, 0)
    with tenant_scope(somebody.tenant.id):
        said = verdict(second.id)
        assert said is not None
        assert (said.reward, said.reason) == (0, "the judge failed: spend cap: 120 judge tokens a day")
        # once there is room it can be judged after all
        services.change_judging(
            tenant_id=somebody.tenant.id, policy=None, changes={"daily_tokens": 0}, actor="user:1"
        )
        services.replay(judgement_id=Judgement.objects.get(turn=second).id, actor="user:1")
    again = judge(second, backend)
    assert again is not None
    assert again.state == JudgementState.SETTLED


def test_what_a_dead_worker_had_set_aside_is_given_back_by_the_next(somebody: Somebody) -> None:
    turn = add_turn(somebody)

    class Dies(Told):
        def judge(self, view: object) -> "object":  # type: ignore[override]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(turn, Dies(most=100))
    assert spent(somebody).reserved == 100
    with tenant_scope(somebody.tenant.id):
        Judgement.objects.update(claimed_until=None)
    judge(turn, Told(most=70))
    assert (spent(somebody).reserved, spent(somebody).prompt_tokens) == (0, 30)


@pytest.mark.django_db(transaction=True)
def test_two_judgements_never_share_the_last_tokens() -> None:
    somebody = add_somebody()
    taken: list[bool] = []

    def take() -> None:
        with tenant_scope(somebody.tenant.id), transaction.atomic():
            taken.append(spend.reserve(tenant_id=somebody.tenant.id, tokens=30, cap=100) is not None)
        connection.close()

    threads = [threading.Thread(target=take) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [False, False, False, True, True, True]
    assert (spent(somebody).reserved, spent(somebody).refused) == (90, 3)


@pytest.mark.django_db(transaction=True)
def test_no_connection_is_held_while_the_judge_thinks() -> None:
    somebody = add_somebody()
    held: list[bool] = []

    class Looks(Told):
        def judge(self, view):  # type: ignore[no-untyped-def]
            held.append(connection.connection is not None)
            return super().judge(view)

    judgement = judge(add_turn(somebody), Looks())
    assert judgement is not None
    assert (judgement.state, held) == (JudgementState.SETTLED, [False])


def test_an_override_counts_more_than_judges_and_less_than_a_person(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    judge(turn, Told(scores=(1, 1, 1)))
    with tenant_scope(somebody.tenant.id):
        services.override(turn_id=turn.id, reward=-1, actor="user:1", reason="praised by a bot")
        said = verdict(turn.id)
        assert said is not None
        assert (said.reward, said.source, said.reason, said.hints) == (-1, "override", "praised by a bot", ())
        assert Judgement.objects.filter(source="judge").count() == 1
        Feedback.objects.create(turn=turn, user=somebody.user, score=1)
        said = verdict(turn.id)
        assert said is not None
        assert (said.reward, said.source) == (1, "human")
        with pytest.raises(InvalidInput):
            services.override(turn_id=turn.id, reward=2, actor="user:1", reason="x")
        side = add_turn(somebody, side=True)
        with pytest.raises(Conflict):
            services.override(turn_id=side.id, reward=1, actor="user:1", reason="x")
        (entry,) = AuditEntry.objects.filter(action="judgement.override")
        assert entry.detail == {"reward": -1, "reason": "praised by a bot"}


def test_every_attempts_votes_are_rows(somebody: Somebody) -> None:
    turn = add_turn(somebody)
    judge(turn, Told(away=True))
    judge(turn, Told(scores=(1, 1, 1)))
    with tenant_scope(somebody.tenant.id):
        votes = list(Vote.objects.order_by("attempt", "number").values_list("attempt", "number", "score"))
    assert votes == [(1, 1, None), (2, 1, 1), (2, 2, 1), (2, 3, 1)]
