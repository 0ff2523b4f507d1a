"""Publishing as workers do it: once at a time for a version, and not before it can be measured."""

import threading
import uuid
from typing import Any

import pytest
from django.db import connection

from apps.adapters import publishing as rooms
from apps.adapters.models import AdapterVersion, VersionState
from apps.evaluation.choosing.measure import Interrupted
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
