"""Exports as work: asked for once, written by one, tried again, fetched, forgotten."""

import datetime as dt
import io
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Role
from apps.governance.export import archive, files, jobs
from apps.governance.models import Export, ExportState
from kernel.errors import Conflict
from kernel.models import AuditEntry, OutboxMessage
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.apps.governance.test_export import read
from tests.rest.conftest import Api, member
from workers import upkeep
from workers.governance import write_export


def asked(rows: Rows) -> Export:
    with tenant_scope(rows.tenant.pk):
        return jobs.request_export(tenant_id=rows.tenant.pk, actor="user:x")


def stands(export: Export) -> Export:
    with system_scope("look"):
        return Export.objects.get(pk=export.pk)


def written(export: Export) -> Export:
    write_export(tenant_id=str(export.tenant_id), export_id=str(export.pk))
    return stands(export)


def put_back(export: Export, **values: Any) -> None:
    with system_scope("time passes"):
        Export.objects.filter(pk=export.pk).update(**values)


def test_an_export_is_written_once_however_often_it_is_announced(acme: Rows) -> None:
    export = asked(acme)
    with system_scope("look"):
        (message,) = OutboxMessage.objects.filter(task="workers.governance.write_export")
    assert message.kwargs == {"export_id": str(export.pk), "tenant_id": str(acme.tenant.pk)}
    done = written(export)
    assert (done.state, done.attempts, done.fence, done.rows_done) == (
        ExportState.READY,
        1,
        1,
        done.rows_total,
    )
    place = files.place_of(done)
    assert (place.stat().st_size, place.stat().st_mode & 0o777) == (done.size, 0o600)
    assert done.expires_at is not None
    assert done.expires_at - done.finished_at == dt.timedelta(hours=72)  # type: ignore[operator]
    again = written(export)
    assert (again.attempts, again.sha256, again.finished_at) == (1, done.sha256, done.finished_at)
    with system_scope("look"):
        said = AuditEntry.objects.filter(target=f"export:{export.pk}").order_by("created_at")
        assert list(said.values_list("action", flat=True)) == ["export.request", "export.ready"]


def test_a_tenant_has_one_under_way(acme: Rows) -> None:
    export = asked(acme)
    with pytest.raises(Conflict) as refused:
        asked(acme)
    assert refused.value.code == "export_under_way"
    assert asked(fill("globex")).pk != export.pk
    written(export)
    assert asked(acme).pk != export.pk


@pytest.mark.parametrize(
    "values",
    [
        {"state": "half"},
        {"state": "ready"},
        {"state": "failed", "reason": ""},
        {"state": "running", "lease_until": None},
    ],
)
def test_postgres_refuses_an_export_that_is_neither_here_nor_there(
    acme: Rows, values: dict[str, Any]
) -> None:
    export = asked(acme)
    with pytest.raises(IntegrityError), transaction.atomic():
        put_back(export, **values)
    with pytest.raises(IntegrityError), transaction.atomic(), tenant_scope(acme.tenant.pk):
        Export.objects.create(tenant=acme.tenant, actor="x", available_at=timezone.now())


def test_a_holder_that_went_silent_is_replaced_and_finishes_nothing(
    acme: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = asked(acme)
    real = archive.write_archive

    def slow(place: Path, **more: Any) -> Any:
        """The machine sleeps through its lease, and somebody else writes the export meanwhile."""
        monkeypatch.setattr(jobs, "write_archive", real)
        put_back(export, lease_until=timezone.now() - dt.timedelta(seconds=1))
        other = threading.Thread(target=_elsewhere, args=(export,))
        other.start()
        other.join()
        return real(place, **more)

    monkeypatch.setattr(jobs, "write_archive", slow)
    done = written(export)
    assert (done.state, done.fence, done.attempts) == (ExportState.READY, 2, 2)
    folder = files.place_of(done).parent
    assert [path.name for path in folder.iterdir()] == [f"{export.pk}-2.zip"]


def _elsewhere(export: Export) -> None:
    write_export(tenant_id=str(export.tenant_id), export_id=str(export.pk))
    connection.close()


def test_a_live_holder_is_left_alone(acme: Rows) -> None:
    export = asked(acme)
    put_back(export, state="running", lease_until=timezone.now() + dt.timedelta(seconds=30), fence=1)
    assert written(export).state == ExportState.RUNNING
    with system_scope("upkeep"):
        assert jobs.ask_again(older_than_s=0.0) == 0
    put_back(export, lease_until=timezone.now() - dt.timedelta(seconds=1))
    with system_scope("upkeep"):
        OutboxMessage.objects.update(sent_at=timezone.now())
        assert jobs.ask_again(older_than_s=0.0) == 1
        assert OutboxMessage.objects.filter(sent_at=None, dedupe_key=f"export:{export.pk}").count() == 1
    assert written(export).state == ExportState.READY


def test_what_fails_is_tried_again_and_then_says_why(acme: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    export = asked(acme)

    def full(_place: Path, **_more: Any) -> Any:
        raise OSError("no space left on device")

    monkeypatch.setattr(jobs, "write_archive", full)
    for attempt in (1, 2):
        now = written(export)
        assert (now.state, now.attempts) == (ExportState.QUEUED, attempt)
        assert now.reason == "OSError: no space left on device"
        assert written(export).attempts == attempt  # not before its time
        put_back(export, available_at=timezone.now())
    assert written(export).state == ExportState.FAILED
    asked(acme)


def test_many_tenants_do_not_take_all_workers(acme: Rows, settings: Any) -> None:
    settings.EXPORTS_AT_ONCE = 1
    other = asked(fill("globex"))
    put_back(other, state="running", lease_until=timezone.now() + dt.timedelta(seconds=30))
    export = asked(acme)
    now = written(export)
    assert (now.state, now.attempts) == (ExportState.QUEUED, 0)
    assert now.available_at > timezone.now()
    put_back(other, lease_until=timezone.now() - dt.timedelta(seconds=1))
    put_back(export, available_at=timezone.now())
    assert written(export).state == ExportState.READY


def test_one_that_is_ended_while_it_is_written_leaves_nothing(
    acme: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = asked(acme)
    real = archive.write_archive

    def ended(place: Path, **more: Any) -> Any:
        with tenant_scope(acme.tenant.pk):
            jobs.cancel_export(export_id=export.pk, actor="user:x")
        return real(place, **more)

    monkeypatch.setattr(jobs, "write_archive", ended)
    assert written(export).state == ExportState.EXPIRED
    assert list(files.place_of(export).parent.iterdir()) == []
    with tenant_scope(acme.tenant.pk), pytest.raises(Conflict):
        jobs.cancel_export(export_id=export.pk, actor="user:x")


def test_a_file_is_gone_when_its_time_is_over(acme: Rows) -> None:
    export = written(asked(acme))
    place = files.place_of(export)
    upkeep.collect_garbage()
    assert place.exists()
    stray = place.with_name(f"{uuid.uuid4()}-1.zip")
    stray.write_bytes(b"half")
    assert files.collect_garbage(older_than_s=-1.0) == [stray.name]
    put_back(export, expires_at=timezone.now() - dt.timedelta(seconds=1))
    upkeep.collect_garbage()
    assert (stands(export).state, place.exists()) == (ExportState.EXPIRED, False)


@pytest.fixture
def admin(acme: Rows) -> Api:
    return member(acme.tenant, Role.ADMIN)


def test_an_export_over_rest(acme: Rows, admin: Api) -> None:
    made = admin.ask("POST", "exports", **{"Idempotency-Key": "one"})
    assert made.status_code == 201, made.content
    body = made.json()
    assert (body["state"], body["rows_total"], body["size"]) == ("queued", 0, None)
    assert admin.ask("POST", "exports", **{"Idempotency-Key": "one"}).json()["id"] == body["id"]
    assert admin.ask("POST", "exports").json()["code"] == "export_under_way"
    early = admin.ask("GET", f"exports/{body['id']}/download")
    assert (early.status_code, early.json()["code"]) == (404, "export_not_ready")
    export = written(Export(pk=uuid.UUID(body["id"]), tenant_id=acme.tenant.pk))
    assert admin.get(f"exports/{export.pk}")["state"] == "ready"
    assert admin.get("exports")["results"][0]["id"] == str(export.pk)
    whole = admin.ask("GET", f"exports/{export.pk}/download")
    data = b"".join(whole)
    assert (whole.status_code, len(data), whole["ETag"]) == (200, export.size, f'"{export.sha256}"')
    assert whole["Content-Disposition"].startswith('attachment; filename="attune-acme-2')
    assert len(read(io.BytesIO(data))["turns.jsonl"]) == 2
    rest = admin.ask("GET", f"exports/{export.pk}/download", Range="bytes=100-")
    assert (rest.status_code, b"".join(rest)) == (206, data[100:])
    assert rest["Content-Range"] == f"bytes 100-{len(data) - 1}/{len(data)}"
    other = admin.ask("GET", f"exports/{export.pk}/download", Range="bytes=100-", **{"If-Range": '"x"'})
    assert (other.status_code, b"".join(other)) == (200, data)
    for absurd in ("9" * 5000, f"0-{'9' * 5000}"):  # more digits than a number may have
        said = admin.ask("GET", f"exports/{export.pk}/download", Range=f"bytes={absurd}-")
        assert (said.status_code, b"".join(said)) == (200, data)
    part = admin.ask("GET", f"exports/{export.pk}/download", Range="bytes=5-9")
    assert (part.status_code, b"".join(part)) == (206, data[5:10])
    with system_scope("look"):
        assert AuditEntry.objects.filter(action="export.download").count() == 6
    assert admin.ask("DELETE", f"exports/{export.pk}").status_code == 204
    assert admin.ask("GET", f"exports/{export.pk}/download").status_code == 404
    assert admin.ask("DELETE", f"exports/{export.pk}").status_code == 409
    assert not any(Path(settings.EXPORT_STORE).glob("*/*"))


def test_a_foreign_export_is_nowhere(acme: Rows) -> None:
    export = written(asked(acme))
    stranger = member(fill("globex").tenant, Role.OWNER)
    for method, path in (("GET", ""), ("GET", "/download"), ("DELETE", "")):
        assert stranger.ask(method, f"exports/{export.pk}{path}").status_code == 404
    assert Client().get(f"/api/exports/{export.pk}/download").status_code == 401
    assert stands(export).state == ExportState.READY
