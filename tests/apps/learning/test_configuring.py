"""Every configuration of a policy is a numbered row, whoever changed it,
and a run names the one it was taken under."""

import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from pytest_django import Settings

from apps.adapters.models import Policy, PolicyConfig
from apps.adapters.services import create_policy
from apps.learning import endings, runs
from apps.learning.config import TrainingConfig, described, resolve
from apps.learning.configuring import OPERATORS, changes, configure
from apps.learning.models import TrainingRun
from apps.learning.presets import PRESETS, SPOKEN_OF, preset_of
from kernel.errors import Conflict, InvalidInput, NotFound
from kernel.models import AuditEntry
from kernel.tenancy import tenant_scope
from tests.apps.learning.ledger import add_samples, queue_run
from tests.tenants import Somebody, add_somebody

ME = "user:me"


def history(policy: Policy) -> list[tuple[int, dict[str, Any], str]]:
    rows = PolicyConfig.objects.filter(policy=policy).order_by("number")
    return list(rows.values_list("number", "overrides", "actor"))


def holds(policy: Policy) -> tuple[int, dict[str, Any]]:
    now = Policy.objects.get(pk=policy.pk)
    return now.config_number, now.config


def set_(somebody: Somebody, **config: Any) -> PolicyConfig:
    return configure(policy_id=somebody.policy.pk, actor=ME, config=config)


def at_commit() -> None:
    """Check now what Postgres would check when the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def refused(words: str, *acts: Callable[[], object]) -> None:
    """Assert that Postgres refuses these acts, at once or when their transaction ends."""

    def together() -> None:
        with transaction.atomic():
            for act in acts:
                act()
            at_commit()

    with pytest.raises(IntegrityError, match=words):
        together()


def test_each_change_is_the_next_row_with_who_made_it(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        before = history(somebody.policy)
        assert [(number, config) for number, config, _ in before] == [(1, {})]
        set_(somebody, lr=0, batch_size=16.0)
        row = set_(somebody, batch_size=4, drift={"ess": {"limit": 0.5}})
        assert (row.number, row.overrides) == (
            3,
            {"lr": 0.0, "batch_size": 4, "drift": {"ess": {"limit": 0.5}}},
        )
        assert history(somebody.policy) == [
            *before,
            (2, {"lr": 0.0, "batch_size": 16}, ME),
            (3, row.overrides, ME),
        ]
        assert holds(somebody.policy) == (3, row.overrides)
        at_commit()
        entries = AuditEntry.objects.filter(action="policy.config", actor=ME).order_by("id")
        assert [entry.detail for entry in entries] == [
            {"number": 2, "changed": {"lr": {"after": 0.0}, "batch_size": {"after": 16}}},
            {
                "number": 3,
                "changed": {
                    "batch_size": {"before": 16, "after": 4},
                    "drift": {"after": {"ess": {"limit": 0.5}}},
                },
            },
        ]


def test_a_new_policys_first_configuration_says_who_made_it(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        policy = create_policy(tenant=somebody.tenant, name="coder", actor=ME)
        at_commit()
        assert history(policy) == [(1, {}, ME)]


def test_what_comes_to_the_same_is_no_change(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        assert set_(somebody, batch_size=16).number == 2
        assert set_(somebody, batch_size=16.0).number == 2
        assert set_(somebody).number == 2
        assert AuditEntry.objects.filter(action="policy.config").count() == 1


def test_the_whole_replaces_all_but_what_is_the_operators(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        configure(
            policy_id=somebody.policy.pk, actor="user:op", config={"lr": 0, "attempts": 9}, operator=True
        )
        row = configure(policy_id=somebody.policy.pk, actor=ME, config={"hints": 2}, whole=True)
        assert row.overrides == {"hints": 2, "attempts": 9}
        row = configure(policy_id=somebody.policy.pk, actor=ME, config={}, whole=True, operator=True)
        assert row.overrides == {}


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_what_a_step_may_cost_is_not_the_tenants_to_set(somebody: Somebody, name: str) -> None:
    with tenant_scope(somebody.tenant.id):
        with pytest.raises(InvalidInput, match="operators") as refused:
            set_(somebody, **{name: 1})
        assert refused.value.field == f"config.{name}"
        assert holds(somebody.policy) == (1, {})


def test_a_refusal_names_field_and_limit_and_changes_nothing(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        with pytest.raises(InvalidInput, match="lr lies between 0 and 1") as refused:
            set_(somebody, hints=2, lr=2)
        assert refused.value.field == "config.lr"
        with pytest.raises(InvalidInput, match="one of standard, gentle, quick") as refused:
            configure(policy_id=somebody.policy.pk, actor=ME, config={}, preset="wild")
        assert refused.value.field == "preset"
        with pytest.raises(NotFound):
            configure(policy_id=uuid.uuid4(), actor=ME, config={})
        assert history(somebody.policy)[1:] == []
        assert not AuditEntry.objects.filter(action="policy.config").exists()


def test_a_change_thought_of_against_another_configuration_is_a_conflict(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        configure(policy_id=somebody.policy.pk, actor=ME, config={"hints": 2}, expected=1)
        with pytest.raises(Conflict, match="number 2 by now, not 1") as refused:
            configure(policy_id=somebody.policy.pk, actor=ME, config={"hints": 3}, expected=1)
        assert (refused.value.code, refused.value.field) == ("changed_meanwhile", "number")
        assert holds(somebody.policy) == (2, {"hints": 2})


@pytest.mark.django_db(transaction=True)
def test_of_many_who_change_at_once_each_has_a_row_and_of_those_who_looked_one_wins() -> None:
    somebody = add_somebody()
    policy, tenant = somebody.policy, somebody.tenant.id
    said: list[str] = []
    start = threading.Barrier(6)

    def change(index: int) -> None:
        with tenant_scope(tenant):
            start.wait()
            try:
                if index < 3:
                    configure(policy_id=policy.pk, actor=ME, config={"hints": 2, "top_k": index + 10})
                else:
                    configure(policy_id=policy.pk, actor=ME, config={"lr": index / 100}, expected=1)
            except Conflict as error:
                said.append(error.code)
        connection.close()

    threads = [threading.Thread(target=change, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with tenant_scope(tenant):
        found = history(policy)
        assert [number for number, _, _ in found] == list(range(1, len(found) + 1))
        assert holds(policy) == (found[-1][0], found[-1][1])
    # the three that looked at number 1: at most one of them was first
    assert len(found) == 1 + 6 - len(said)
    assert said in (["changed_meanwhile"] * 2, ["changed_meanwhile"] * 3)


def test_a_statement_that_names_nobody_is_numbered_too(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        stale = Policy.objects.get(pk=somebody.policy.pk)
        set_(somebody, hints=2)
        Policy.objects.filter(pk=somebody.policy.pk).update(config={"hints": 3}, config_number=77)
        assert holds(somebody.policy) == (3, {"hints": 3})
        stale.save()  # as somebody who looked before both
        assert holds(somebody.policy) == (4, {})
        Policy.objects.filter(pk=somebody.policy.pk).update(config_number=1, temperature=0.5)
        assert holds(somebody.policy) == (4, {})
        at_commit()
        assert [(number, actor) for number, _, actor in history(somebody.policy)[1:]] == [
            (2, ME),
            (3, "system:database"),
            (4, "system:database"),
        ]


def test_a_row_is_never_changed_deleted_or_written_ahead(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        set_(somebody, hints=2)
        rows = PolicyConfig.objects.filter(policy=somebody.policy)
        itself = Policy.objects.filter(pk=somebody.policy.pk)

        def write_ahead() -> None:
            PolicyConfig.objects.create(policy=somebody.policy, number=3, overrides={"hints": 3}, actor=ME)

        refused("never changed", lambda: rows.filter(number=1).update(actor="user:somebody else"))
        refused("kept as long as its policy", lambda: rows.filter(number=1).delete())
        refused("for a policy that takes it", write_ahead)
        refused("says otherwise", write_ahead, lambda: itself.update(config={"hints": 1}))
        assert [number for number, _, _ in history(somebody.policy)] == [1, 2]
        at_commit()
        somebody.policy.delete()
        at_commit()
        assert not rows.exists()


def test_a_row_is_of_its_policys_tenant(somebody: Somebody) -> None:
    other = add_somebody("globex")
    theirs = PolicyConfig(policy_id=somebody.policy.pk, number=2, overrides={}, actor=ME)
    with tenant_scope(other.tenant.id):
        refused("config_of_the_policys_tenant", theirs.save)


def test_a_run_records_the_configuration_it_was_taken_under(somebody: Somebody) -> None:
    add_samples(somebody, 8)
    with tenant_scope(somebody.tenant.id):
        set_(somebody, batch_size=2, lr=0.001)
        queued = queue_run(somebody)
        assert queued.config_number is None
        set_(somebody, lr=0.002)
        claim = runs.claim_run(run_id=queued.id)
        assert claim is not None
        set_(somebody, lr=0.003, batch_size=8)  # while it runs

        run = TrainingRun.objects.get(pk=queued.pk)
        row = PolicyConfig.objects.get(policy=somebody.policy, number=run.config_number)
        assert (run.config_number, row.overrides) == (3, {"lr": 0.002, "batch_size": 2})
        assert run.config == resolve(row.overrides).to_json()
        assert endings.config_of(run) == claim.config
        itself = TrainingRun.objects.filter(pk=run.pk)
        refused("run_config_is_its_policys", lambda: itself.update(config_number=99))


@pytest.mark.parametrize(
    ("lr", "batch", "flush_s", "stale"), [(4e-4, 8, 1800, 4), (1, 4096, 2_592_000, 1000)]
)
def test_presets_stay_within_bounds_and_are_told_apart(
    settings: Settings, lr: float, batch: int, flush_s: float, stale: int
) -> None:
    settings.TRAINING_LR, settings.TRAINING_BATCH = lr, batch
    settings.TRAINING_FLUSH_S, settings.TRAINING_MAX_STALENESS = flush_s, stale
    for preset in PRESETS:
        overrides = preset.overrides()
        assert set(overrides) <= set(SPOKEN_OF)
        assert resolve(resolve(overrides).to_json()) == resolve(overrides)
        assert preset_of({**overrides, "hints": 3}) == preset.name


def test_what_presets_say_today() -> None:
    assert {preset.name: preset.overrides() for preset in PRESETS} == {
        "standard": {},
        "gentle": {"lr": 0.0002, "batch_size": 16, "flush_s": 7200.0, "kl_weight": 0.02},
        "quick": {"lr": 0.0008, "batch_size": 4, "flush_s": 450.0, "max_staleness": 8},
    }
    assert preset_of({"lr": 0.0001}) == ""


def test_a_preset_sets_what_it_speaks_of_and_leaves_the_rest(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.id):
        set_(somebody, method="binary", kl_weight=1, lr=0.01)
        row = configure(policy_id=somebody.policy.pk, actor=ME, config={"lr": 0.002}, preset="quick")
        assert row.overrides == {
            "lr": 0.002,
            "batch_size": 4,
            "flush_s": 450.0,
            "max_staleness": 8,
            "method": "binary",
        }
        row = configure(policy_id=somebody.policy.pk, actor=ME, config={}, preset="standard")
        assert row.overrides == {"method": "binary"}


def test_a_difference_to_none_is_one() -> None:
    assert changes({"lr": 1, "hints": 2}, {"lr": 1, "dual_clip": None}) == {
        "dual_clip": {"after": None},
        "hints": {"before": 2},
    }


def test_every_setting_is_described_with_its_bounds() -> None:
    found = described()
    assert list(found) == list(TrainingConfig.__dataclass_fields__)
    assert found["lr"] == {"type": "number", "minimum": 0, "maximum": 1}
    assert found["dual_clip"] == {"type": "number", "minimum": 1, "maximum": 100, "nullable": True}
    assert found["method"] == {"type": "string", "enum": ["combined", "binary", "opd"]}
    assert found["normalise"] == {"type": "boolean"}
