"""Publishing as workers do it: once at a time for a version, and not before it can be measured."""

import threading
import uuid
from typing import Any

import pytest
from django.db import connection

from apps.adapters import publishing as rooms
from apps.adapters.models import AdapterVersion, PointerMove, Policy, VersionState
from apps.engines.replies import (
    AdapterMissing,
    EngineBroken,
    EngineBusy,
    EngineGone,
    EngineSilent,
)
from apps.evaluation.choosing.giving_way import Interrupted
from apps.memory.models import Lesson, LessonState
from kernel.errors import AttuneError
from kernel.locks import alone
from kernel.tenancy import tenant_scope
from tests.apps.learning.ledger import unsent
from tests.tenants import add_somebody, add_version
from workers import publishing


@pytest.fixture
def version(transactional_db: None) -> AdapterVersion:
    somebody = add_somebody()
    made = add_version(somebody.policy, 1, live=False)
    with tenant_scope(somebody.tenant.id):
        AdapterVersion.objects.filter(pk=made.pk).update(state=VersionState.CREATED, ready_at=None)
    return made


def publish(version: AdapterVersion) -> None:
    publishing.publish(tenant_id=str(version.tenant_id), version_id=str(version.pk))


def test_the_same_message_twice_is_worked_on_once(
    version: AdapterVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end, published = threading.Event(), threading.Event(), []

    def slow(version_id: uuid.UUID, **_: Any) -> None:
        published.append(version_id)
        begun.set()
        assert may_end.wait(20)

    def first() -> None:
        try:
            publish(version)
        finally:
            connection.close()

    monkeypatch.setattr(rooms, "publish", slow)
    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(20)
    publish(version)  # returns at once
    may_end.set()
    thread.join()
    assert published == [version.pk]

    publish(version)  # the place is free again
    assert published == [version.pk, version.pk]


def test_a_version_that_cannot_be_measured_yet_is_not_loaded_and_asked_for_again(
    version: AdapterVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(_: AdapterVersion) -> None:
        raise Interrupted("what it is measured by is measured first", retry_after_s=5.0)

    published: list[uuid.UUID] = []
    monkeypatch.setattr(publishing.yardstick, "check_measurable", wait)
    monkeypatch.setattr(rooms, "publish", lambda version_id, **_: published.append(version_id))
    publish(version)
    assert published == []
    assert len(unsent("workers.publishing.publish")) == 1


@pytest.mark.parametrize(
    "error",
    [
        EngineBroken("the engine stopped in the middle of the reply"),
        EngineGone("nobody answers at the engine's address"),
        EngineSilent("the engine does not answer in time"),
        AdapterMissing("no engine has this policy's adapter loaded right now"),
        EngineBusy("the engine's queue is full"),
        Interrupted("somebody asked meanwhile"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_while_an_engine_is_down_or_busy_a_version_says_what_it_waits_for_and_is_tried_again(
    version: AdapterVersion,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: AttuneError,
) -> None:
    def breaks(_: AdapterVersion) -> str:
        raise error

    monkeypatch.setattr(publishing.gate, "choose", breaks)
    monkeypatch.setattr(rooms, "publish", lambda _, *, choose: choose(version))
    with caplog.at_level("INFO"):
        publish(version)
    (message,) = unsent("workers.publishing.publish")
    assert message.kwargs["version_id"] == str(version.pk)
    assert round((message.available_at - message.created_at).total_seconds()) == publishing.RETRY_S
    (said,) = [row for row in caplog.records if row.name == "workers.publishing"]
    assert error.message in said.message
    assert said.exc_info is None
    with tenant_scope(version.tenant_id):
        now = AdapterVersion.objects.get(pk=version.pk)
    assert (now.state, now.reason) == (VersionState.CREATED, f"waits: {error.message}")


def test_one_whose_policy_was_rolled_back_says_so_while_its_checks_wait(version: AdapterVersion) -> None:
    """No engine is there: it is neither ready nor refused for as long as that lasts."""
    with tenant_scope(version.tenant_id):
        parent = add_version(version.policy, 2, live=False)
        AdapterVersion.objects.filter(pk=version.pk).update(parent=parent)
        PointerMove.objects.create(policy=version.policy, to_version=parent, actor="test", reason="test")
        PointerMove.objects.create(policy=version.policy, from_version=parent, actor="test", reason="test")
        version.refresh_from_db()
        rooms.note_waiting(version, "no engine is ready")
        now = AdapterVersion.objects.get(pk=version.pk)
    assert (now.state, now.reason) == (
        VersionState.CREATED,
        "not live: the policy was rolled back meanwhile; its checks wait: no engine is ready",
    )


def test_one_whose_policy_was_rolled_back_does_not_wait_to_be_measured(
    version: AdapterVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lesson has no yardstick, and gets none while the policy answers from elsewhere."""
    monkeypatch.setattr(publishing.yardstick, "taught_by_shadows", lambda _: True)
    monkeypatch.setattr(publishing.yardstick, "standing", lambda _: object())
    lesson = Lesson(state=LessonState.TEACHING)
    monkeypatch.setattr(publishing.yardstick, "lesson_of", lambda *_: lesson)
    published: list[uuid.UUID] = []
    monkeypatch.setattr(rooms, "publish", lambda version_id, **_: published.append(version_id))
    publish(version)
    assert published == []
    with tenant_scope(version.tenant_id):
        elsewhere = add_version(version.policy, 2)
        AdapterVersion.objects.filter(pk=version.pk).update(parent=None)
        assert Policy.objects.get(pk=version.policy_id).live_id == elsewhere.pk
    publish(version)
    assert published == [version.pk]


def test_a_place_is_free_again_once_its_holder_is_gone(transactional_db: None) -> None:
    held, may_die = threading.Event(), threading.Event()

    def holder() -> None:
        with alone("work") as first:
            assert first
            held.set()
            assert may_die.wait(20)
            connection.close()  # as where a process dies

    thread = threading.Thread(target=holder, daemon=True)
    thread.start()
    assert held.wait(20)
    with alone("work") as first:
        assert not first
    with alone("other work") as first:
        assert first
    may_die.set()
    thread.join()
    with alone("work") as first:
        assert first
