"""A step too far, and a policy that goes back to the version before."""

from typing import Any

import pytest

from apps.adapters.models import AdapterVersion, PointerMove, Policy, VersionState
from apps.adapters.publishing import publish
from apps.engines.replies import EngineUnavailable
from apps.learning.drift import actions, pauses
from apps.learning.drift.models import Crossing
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.learning.drifting import configure, live, reading, step
from tests.apps.learning.ledger import unsent
from tests.tenants import Somebody, add_version


@pytest.fixture(autouse=True)
def _scope(somebody: Somebody) -> Any:
    with tenant_scope(somebody.tenant.id):
        yield


def test_a_step_too_far_is_withheld_and_the_version_before_goes_on(somebody: Somebody) -> None:
    step(somebody)
    assert live(somebody) == 1
    run = step(somebody, step_k3=5.8)
    version = run.version
    assert version is not None
    assert (version.number, version.state, live(somebody)) == (2, VersionState.REFUSED, 1)
    assert version.reason.startswith("drift: k3 of the step is 5.8 nats a token, over the bound of 5")
    assert publish(version.pk).outcome == "refused"
    crossing = Crossing.objects.get(measure="step_k3")
    assert crossing.acted_at is not None
    assert crossing.done == (
        "Version 2 is withheld, the one before it goes on answering. Training is paused until somebody resumes it."
    )
    assert unsent("workers.drift.fall_back") == []
    assert pauses.why_paused(somebody.policy.id).startswith("k3 of the step")


def test_the_bound_of_a_policy_says_what_happens(somebody: Somebody) -> None:
    configure(somebody, rollout_k3={"action": "alert"}, step_k3={"limit": 9.0}, ess={"action": "off"})
    run = step(somebody, rollout_k3=0.9, step_k3=5.8, ess=0.1)
    assert [(c.measure, c.done) for c in Crossing.objects.all()] == [("rollout_k3", "Nothing was changed.")]
    assert (pauses.why_paused(somebody.policy.id), live(somebody)) == ("", 1)
    assert reading(run).bounds["rollout_k3"] == [0.5, "alert"]
    assert "ess" not in reading(run).bounds


def test_a_fall_back_without_a_new_version_moves_the_pointer_once(
    somebody: Somebody, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(somebody, rollout_k3={"action": "fall_back"})
    one = add_version(somebody.policy, 1)
    two = add_version(somebody.policy, 2, parent=one)
    run = step(somebody, outcome="skipped", rollout_k3=0.9)
    assert (run.version_id, live(somebody)) == (None, 2)
    crossing = Crossing.objects.get()
    assert (crossing.version_id, crossing.acted_at) == (two.pk, None)
    assert [m.kwargs["crossing_id"] for m in unsent("workers.drift.fall_back")] == [str(crossing.pk)]

    def away(*_: Any) -> None:
        raise EngineUnavailable("no engine answers", retry_after_s=1.0)

    monkeypatch.setattr("apps.adapters.placement.bring_back", away)
    actions.fall_back(crossing_id=crossing.pk)
    assert live(somebody) == 2
    with system_scope("upkeep"):
        assert actions.ask_again(older_than_s=0) == 1

    monkeypatch.setattr("apps.adapters.placement.bring_back", lambda _version: None)
    for _ in range(3):
        actions.fall_back(crossing_id=crossing.pk)
    assert live(somebody) == 1
    move = PointerMove.objects.get()
    assert (move.actor, move.reason.startswith("drift: k3 from engine to learner is 0.9")) == (
        "system:drift",
        True,
    )
    crossing.refresh_from_db()
    assert crossing.done.startswith("The policy answers from version 1 again.")
    with system_scope("upkeep"):
        assert actions.ask_again(older_than_s=0) == 0


def test_a_fall_back_to_a_version_whose_files_are_gone_says_so_and_is_not_tried_for_ever(
    somebody: Somebody,
) -> None:
    configure(somebody, rollout_k3={"action": "fall_back"})
    add_version(somebody.policy, 2, parent=add_version(somebody.policy, 1))  # neither has files
    step(somebody, outcome="skipped", rollout_k3=0.9)
    crossing = Crossing.objects.get()
    actions.fall_back(crossing_id=crossing.pk)
    crossing.refresh_from_db()
    assert live(somebody) == 2
    assert crossing.done.startswith("It could not fall back: ")
    assert "no readable manifest.json" in crossing.done
    assert crossing.done.endswith("Training is paused until somebody resumes it.")
    with system_scope("upkeep"):
        assert actions.ask_again(older_than_s=0) == 0


def test_a_fall_back_leaves_a_policy_alone_that_has_moved_meanwhile(somebody: Somebody) -> None:
    configure(somebody, rollout_k3={"action": "fall_back"})
    add_version(somebody.policy, 1)
    step(somebody, outcome="skipped", rollout_k3=0.9)
    Policy.objects.update(live=None)
    actions.fall_back(crossing_id=Crossing.objects.get().pk)
    assert Crossing.objects.get().done.startswith("The policy had moved to another version already.")
    assert PointerMove.objects.count() == 0


def test_a_fall_back_that_an_operator_was_faster_than_is_not_done(
    somebody: Somebody, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.adapters.placement.bring_back", lambda _version: None)
    configure(somebody, rollout_k3={"action": "fall_back"})
    add_version(somebody.policy, 2, parent=add_version(somebody.policy, 1))
    step(somebody, outcome="skipped", rollout_k3=0.9)
    pauses.resume(policy_id=somebody.policy.id, actor="user:1", reason="it is well")
    with system_scope("upkeep"):
        assert actions.ask_again(older_than_s=0) == 0
    actions.fall_back(crossing_id=Crossing.objects.get().pk)
    assert live(somebody) == 2
    assert Crossing.objects.get().done == "It was over before anything was done: resumed by user:1."


def test_a_refused_ancestor_is_passed_over(somebody: Somebody) -> None:
    one = add_version(somebody.policy, 1, live=False)
    two = add_version(somebody.policy, 2, live=False, parent=one)
    AdapterVersion.objects.filter(pk=two.pk).update(state=VersionState.REFUSED)
    three = AdapterVersion.objects.get(pk=add_version(somebody.policy, 3, parent=two).pk)
    assert actions.version_before(three) == one
    assert actions.version_before(one) is None
