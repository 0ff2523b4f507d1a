"""Publishing as workers do it: once at a time for a version, and not before it can be measured."""

import threading
import uuid
from typing import Any

import pytest
from django.db import connection

from apps.adapters import publishing as rooms
from apps.adapters.models import AdapterVersion, VersionState
from apps.adapters.store import StoreError
from apps.engines.replies import (
    AdapterMissing,
    EngineBroken,
    EngineBusy,
    EngineGone,
    EngineRejected,
    EngineSilent,
)
from apps.evaluation.choosing.measure import Interrupted
from kernel.errors import AttuneError, Conflict
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
    monkeypatch.setattr(publishing.gate, "check_measurable", wait)
    monkeypatch.setattr(rooms, "publish", lambda version_id, **_: published.append(version_id))
    publish(version)
    assert published == []
    assert len(unsent("workers.publishing.publish")) == 1


@pytest.mark.parametrize(
    ("error", "after_s"),
    [
        (EngineBroken("the engine stopped in the middle of the reply"), publishing.RETRY_S),
        (EngineGone("nobody answers at the engine's address"), publishing.RETRY_S),
        (EngineSilent("the engine does not answer in time"), publishing.RETRY_S),
        (AdapterMissing("no engine has this policy's adapter loaded right now"), publishing.RETRY_S),
        (EngineBusy("the engine's queue is full"), publishing.RETRY_S),
        (Interrupted("somebody asked meanwhile"), publishing.RETRY_S),
        (EngineRejected("the input is longer than the context"), publishing.LATER_S),
        (Conflict("version 1 does not answer: rank 32"), publishing.LATER_S),
        (StoreError("its files are gone"), publishing.LATER_S),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, AttuneError) else "",
)
def test_what_breaks_while_a_version_is_chosen_is_said_and_tried_again(
    version: AdapterVersion,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: AttuneError,
    after_s: float,
) -> None:
    def breaks(_: AdapterVersion) -> str:
        raise error

    monkeypatch.setattr(publishing.gate, "choose", breaks)
    monkeypatch.setattr(rooms, "publish", lambda _, *, choose: choose(version))
    with caplog.at_level("INFO"):
        publish(version)
    (message,) = unsent("workers.publishing.publish")
    assert message.kwargs["version_id"] == str(version.pk)
    assert round((message.available_at - message.created_at).total_seconds()) == after_s
    (said,) = [row for row in caplog.records if row.name == "workers.publishing"]
    assert error.message in said.message
    assert said.exc_info is None
    with tenant_scope(version.tenant_id):
        assert AdapterVersion.objects.get(pk=version.pk).state == VersionState.CREATED


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
