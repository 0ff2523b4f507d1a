"""Engines' rows: registering, wanting adapters, recording what engines answered."""

import datetime as dt
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.engines.loading import Placed, Result
from apps.engines.models import (
    DesiredAdapter,
    Engine,
    EngineOrder,
    EngineState,
    LoadedAdapter,
    LoadState,
)
from apps.engines.replies import AdapterMissing, EngineGone, EngineUnavailable
from kernel import audit
from kernel.errors import Conflict, InvalidInput, NotFound
from kernel.outbox import enqueue
from kernel.tenancy import system_scope

FORGOTTEN_AFTER = dt.timedelta(days=1)
"""An engine that is neither configured nor ordered is kept so long after it was last seen."""
_REASON = 500  # as long as the column


def register(*, urls: Sequence[str] | None = None) -> list[Engine]:
    """Make a row for each engine that should serve and return them; all others get no more requests.

    Those are the configured ones and those that an operator added, without those that an operator drains.
    What is neither configured nor ordered is forgotten a day after it was last seen: an embedded engine has a
    new address at each start.
    """
    configured = [url.rstrip("/") for url in (settings.ENGINE_URLS if urls is None else urls)]
    for url in configured:
        Engine.objects.get_or_create(url=url)
    serving = Q(ordered=EngineOrder.SERVE) | Q(ordered="", url__in=configured)
    gone = Q(ordered="") & ~Q(url__in=configured)
    Engine.objects.filter(gone, seen_at__lt=timezone.now() - FORGOTTEN_AFTER).delete()
    Engine.objects.exclude(serving).update(
        state=EngineState.DRAINING, reason="drained, or no longer configured"
    )
    Engine.objects.filter(serving, state=EngineState.DRAINING).update(
        state=EngineState.STARTING, reason="to be used again"
    )
    return list(Engine.objects.filter(serving).order_by("url"))


def order(*, url: str, order: EngineOrder | None, actor: str) -> Engine:
    """Let an engine serve, drain it, or (None) leave it to the settings again; takes effect at once.

    A drained engine finishes what it has and gets no new request. One that is to serve gets requests as soon
    as reconciling has brought the adapters onto it. Raises InvalidInput or, to drain what is not known,
    NotFound.
    """
    url = url.rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise InvalidInput("an engine's address begins with http:// or https://", field="url")
    with transaction.atomic():
        if order is EngineOrder.SERVE:
            Engine.objects.get_or_create(url=url)
        engine = Engine.objects.select_for_update().filter(url=url).first()
        if engine is None:
            raise NotFound(f"there is no engine at {url}", field="url")
        engine.ordered = order.value if order is not None else ""
        if order is EngineOrder.DRAIN:
            engine.state, engine.reason = EngineState.DRAINING, "drained by an operator"
        engine.save(update_fields=["ordered", "state", "reason"])
        audit.record(
            actor=actor,
            action="engine.order",
            target=f"engine:{engine.pk}",
            tenant_id=None,
            detail={"url": url, "order": engine.ordered or "as configured"},
        )
    return engine


def report(*, url: str, served_name: str | None, error: EngineUnavailable) -> None:
    """Say what a request found at an engine: nobody, or an engine without the adapter that it should have.

    No more requests go there (for that adapter), from the next one on, and engines are looked at now instead
    of at the clock's next turn: one that is there after all, or has it after all, is used again after that
    look.
    """
    with system_scope("a request found an engine not as it should be"), transaction.atomic():
        found = 0
        if isinstance(error, EngineGone):
            found = Engine.objects.filter(url=url, state=EngineState.READY).update(
                state=EngineState.LOST, reason="a request found nobody at its address"
            )
        elif isinstance(error, AdapterMissing) and served_name is not None:
            found = LoadedAdapter.objects.filter(
                engine__url=url, adapter__served_name=served_name, state=LoadState.PROBED
            ).update(state=LoadState.UNLOADED, reason="a request found it missing", updated_at=timezone.now())
        if found:
            enqueue(
                task="workers.upkeep.reconcile_engines",
                queue="ops",
                tenant_id=None,
                kwargs={},
                dedupe_key="reconcile engines",
            )


def want(
    *,
    tenant_id: uuid.UUID,
    served_name: str,
    path: str,
    sha256: str,
    rank: int,
    probe: Sequence[Mapping[str, Any]],
) -> DesiredAdapter:
    """Ask for an adapter on every engine from now on, also after their restarts.

    A served name is bound to one content for ever: the same name with another hash or path is refused.
    """
    with transaction.atomic():
        row, _ = DesiredAdapter.objects.get_or_create(
            served_name=served_name,
            defaults={
                "tenant_id": tenant_id,
                "path": path,
                "sha256": sha256,
                "rank": rank,
                "probe": list(probe),
            },
        )
        row = DesiredAdapter.objects.select_for_update().get(pk=row.pk)
        if (row.tenant_id, row.path, row.sha256) != (tenant_id, path, sha256):
            raise Conflict(f"{served_name} names another adapter already: served names are immutable")
        if not row.wanted:
            row.wanted, row.unwanted_at = True, None
            row.save(update_fields=["wanted", "unwanted_at"])
    return row


def unwant(*, served_names: Iterable[str]) -> None:
    """Say that no new request will ask for these; engines drop them late, when they need the room."""
    DesiredAdapter.objects.filter(served_name__in=list(served_names), wanted=True).update(
        wanted=False, unwanted_at=timezone.now()
    )


def note_loading(*, adapter: DesiredAdapter, urls: Sequence[str]) -> None:
    """Show that engines are being brought an adapter that they have not proven yet."""
    for engine in Engine.objects.filter(url__in=list(urls)):
        LoadedAdapter.objects.get_or_create(
            engine=engine, adapter=adapter, defaults={"tenant_id": adapter.tenant_id}
        )


def record(placed: Placed) -> None:
    """Store what an engine answered about an adapter. An engine that did not answer proves nothing new."""
    with transaction.atomic():
        engine = Engine.objects.get(url=placed.url)
        adapter = DesiredAdapter.objects.get(served_name=placed.served_name)
        row, _ = LoadedAdapter.objects.get_or_create(
            engine=engine, adapter=adapter, defaults={"tenant_id": adapter.tenant_id}
        )
        row.reason = placed.reason[:_REASON]
        if placed.result is not Result.UNAVAILABLE:
            row.state = LoadState.PROBED if placed.result is Result.PROBED else LoadState.FAILED
            row.boot_id = placed.boot_id
            row.probe = dict(placed.probe)
            row.probed_at = timezone.now()
        row.save()
