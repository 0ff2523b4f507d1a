"""Exports as work: who may write one, for how long, how it ends. The rows decide, messages only wake."""

import datetime as dt
import logging
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.accounts.models import Tenant
from apps.governance.export import files
from apps.governance.export.archive import Archive, Progress, write_archive
from apps.governance.models import OPEN_EXPORT_STATES, Export, ExportState
from kernel import audit, clock, outbox
from kernel.errors import Conflict, NotFound
from kernel.locks import locked
from kernel.tenancy import system_scope, tenant_scope

logger = logging.getLogger(__name__)

LEASE_S = 60.0
ATTEMPTS = 3
RETRY_S = 10.0  # before another attempt; doubles
BUSY_S = 5.0  # before an export that found all places taken looks again
_TOLD_EVERY_S = 1.0
_ONE_AT_A_TIME = 7_301_944_128  # names the lock under which exports begin


class ExportLost(Conflict):
    """Somebody else writes the export, or nobody is to: what was written counts for nothing."""

    code = "lease_lost"


def request_export(*, tenant_id: uuid.UUID, actor: str) -> Export:
    """Ask for an archive of everything that the tenant has; audited. Must run in the tenant's scope.

    Raises Conflict where one is under way.
    """
    with transaction.atomic():
        try:
            with transaction.atomic():
                export = Export.objects.create(
                    tenant_id=tenant_id,
                    actor=actor,
                    available_at=timezone.now(),
                )
        except IntegrityError:
            raise Conflict("an export is under way already", code="export_under_way") from None
        audit.record(actor=actor, action="export.request", target=f"export:{export.pk}", tenant_id=tenant_id)
        _announce(export)
    return export


def cancel_export(*, export_id: uuid.UUID, actor: str) -> Export:
    """End an export: one under way is not written, the file of a finished one is deleted; audited."""
    with transaction.atomic():
        export = Export.objects.select_for_update().filter(pk=export_id).first()
        if export is None:
            raise NotFound("There is no such export.")
        if export.state in (ExportState.EXPIRED, ExportState.FAILED):
            raise Conflict(f"the export is {export.state}")
        _end(export, f"deleted by {actor}")
        audit.record(
            actor=actor, action="export.delete", target=f"export:{export.pk}", tenant_id=export.tenant_id
        )
    files.forget(export)
    return export


def record_download(*, export: Export, actor: str) -> None:
    """Note who fetched an export."""
    audit.record(
        actor=actor, action="export.download", target=f"export:{export.pk}", tenant_id=export.tenant_id
    )


def write(*, export_id: uuid.UUID) -> Export | None:
    """Write an export that is due; None where it is not to be had:
    ended, somebody's, or all places are taken.

    An attempt begins anew: its rows are of its own moment. Whatever fails it, it is tried again, `ATTEMPTS`
    times in all. Must run in the tenant's scope and outside a transaction.
    """
    export = _claim(export_id)
    if export is None:
        return None
    tenant = Tenant.objects.get(pk=export.tenant_id)
    place = files.make_room_for(export)
    keeper = _Keeper(export)
    try:
        archive = write_archive(place, tenant=tenant, heard=keeper)
        return _finish(export, archive)
    except ExportLost:
        place.unlink(missing_ok=True)
        logger.info("export %s is no longer to be written here", export.pk)
    except Exception as error:
        place.unlink(missing_ok=True)
        logger.exception("export %s was not written", export.pk)
        _failed(export, f"{type(error).__name__}: {error}")
    finally:
        keeper.close()
    return None


class _Keeper:
    """Keeps the lease and notes how far the export is,
    on a connection beside the one that reads the snapshot."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self._due = 0.0
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="export-lease")

    def __call__(self, progress: Progress) -> None:
        """Note it, once a second. Raises ExportLost where the export is no longer this holder's."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _TOLD_EVERY_S
        if not self._beside.submit(self._kept, progress).result():
            raise ExportLost("the lease is lost")

    def _kept(self, progress: Progress) -> bool:
        with tenant_scope(self._export.tenant_id):
            return bool(
                _held(self._export).update(
                    lease_until=clock.now() + dt.timedelta(seconds=LEASE_S),
                    part=progress.part,
                    rows_done=progress.done,
                    rows_total=progress.total,
                    snapshot_at=progress.snapshot_at,
                )
            )

    def close(self) -> None:
        """Give the connection back."""
        self._beside.submit(lambda: connection.close())  # noqa: PLW0108  # that thread's own, not this one's
        self._beside.shutdown()


def expire(*, limit: int = 100) -> int:
    """End the exports in scope whose time is over, with their files; return how many."""
    due = Export.objects.filter(state=ExportState.READY, expires_at__lt=timezone.now())
    ended = 0
    for export_id in due.values_list("pk", flat=True)[:limit]:
        with transaction.atomic():
            export = Export.objects.select_for_update().get(pk=export_id)
            if export.state == ExportState.READY:
                _end(export, "")
                ended += 1
        files.forget(export)
    return ended


def end_all(tenant_id: uuid.UUID, reason: str) -> int:
    """End every export of the tenant that is there or under way,
    in the caller's transaction; return how many.

    Nobody can fetch one from the commit on; a file that is not deleted right after it is upkeep's.
    """
    rows = Export.objects.filter(tenant_id=tenant_id, state__in=(*OPEN_EXPORT_STATES, ExportState.READY))
    ended = 0
    for export in locked(rows):
        _end(export, reason)
        transaction.on_commit(partial(files.forget, export))
        ended += 1
    return ended


def ask_again(*, older_than_s: float, limit: int = 50) -> int:
    """Announce the exports in scope that are due and nobody writes,
    or whose holder went silent; return how many."""
    now = clock.now()
    due = Export.objects.filter(
        Q(state=ExportState.QUEUED, available_at__lt=now - dt.timedelta(seconds=older_than_s))
        | Q(state=ExportState.RUNNING, lease_until__lt=now)
    )
    with transaction.atomic():
        found = list(due.order_by("available_at")[:limit])
        for export in found:
            _announce(export)
    return len(found)


def _claim(export_id: uuid.UUID) -> Export | None:
    with transaction.atomic():
        export = Export.objects.select_for_update(skip_locked=True).filter(pk=export_id).first()
        now = clock.now()
        if export is None or not _claimable(export, now):
            return None
        if export.attempts >= ATTEMPTS:
            _fail(export, export.reason or "every worker that took it went away")
            return None
        if not _has_a_place():
            export.available_at = now + dt.timedelta(seconds=BUSY_S)
            export.save(update_fields=["available_at"])
            _announce(export, delay_s=BUSY_S)
            return None
        export.state = ExportState.RUNNING
        export.fence += 1
        export.attempts += 1
        export.part, export.rows_done, export.rows_total, export.snapshot_at = "", 0, 0, None
        export.lease_until = now + dt.timedelta(seconds=LEASE_S)
        export.save()
    return export


def _claimable(export: Export, now: dt.datetime) -> bool:
    if export.state == ExportState.QUEUED:
        return export.available_at <= now
    return export.state == ExportState.RUNNING and export.lease_until is not None and export.lease_until < now


def _has_a_place() -> bool:
    """Whether fewer than EXPORTS_AT_ONCE are being written:
    the workers that write them also publish versions."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ONE_AT_A_TIME])
    with system_scope("exports of all tenants share the workers"):
        running = Export.objects.filter(state=ExportState.RUNNING, lease_until__gt=clock.now()).count()
    return running < settings.EXPORTS_AT_ONCE


def _finish(export: Export, archive: Archive) -> Export:
    with transaction.atomic():
        now = timezone.now()
        held = _held(export).select_for_update().first()
        if held is None:
            raise ExportLost("the lease is lost")
        held.state = ExportState.READY
        held.part, held.rows_done = "", held.rows_total
        held.snapshot_at, held.size, held.sha256 = archive.snapshot_at, archive.size, archive.sha256
        held.reason, held.lease_until, held.finished_at = "", None, now
        held.expires_at = now + dt.timedelta(hours=settings.EXPORT_KEPT_HOURS)
        held.save()
        audit.record(
            actor="system:export",
            action="export.ready",
            target=f"export:{held.pk}",
            tenant_id=held.tenant_id,
            detail={"rows": archive.rows, "bytes": archive.size, "sha256": archive.sha256},
        )
    return held


def _failed(export: Export, reason: str) -> None:
    with transaction.atomic():
        held = _held(export).select_for_update().first()
        if held is None:
            return
        if held.attempts >= ATTEMPTS:
            _fail(held, reason)
            return
        delay_s = RETRY_S * 2.0 ** (held.attempts - 1)
        held.state, held.reason, held.lease_until = ExportState.QUEUED, reason[:300], None
        held.available_at = clock.now() + dt.timedelta(seconds=delay_s)
        held.save()
        _announce(held, delay_s=delay_s)


def _fail(export: Export, reason: str) -> None:
    export.state, export.reason = ExportState.FAILED, reason[:300]
    export.lease_until, export.finished_at = None, timezone.now()
    export.save()


def _end(export: Export, reason: str) -> None:
    export.state, export.reason, export.lease_until = ExportState.EXPIRED, reason[:300], None
    export.finished_at = export.finished_at or timezone.now()
    export.save()


def _held(export: Export) -> QuerySet[Export]:
    """Return the export while it is still this holder's."""
    return Export.objects.filter(pk=export.pk, fence=export.fence, state=ExportState.RUNNING)


def _announce(export: Export, *, delay_s: float = 0.0) -> None:
    outbox.enqueue(
        task="workers.governance.write_export",
        queue="ops",
        tenant_id=export.tenant_id,
        kwargs={"export_id": str(export.pk)},
        dedupe_key=f"export:{export.pk}",
        delay_s=delay_s,
    )


def under_way() -> Export | None:
    """Return the tenant's export that is not over yet."""
    return Export.objects.filter(state__in=OPEN_EXPORT_STATES).first()
