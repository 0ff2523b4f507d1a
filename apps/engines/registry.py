"""Engines' rows: registering, wanting adapters, recording what engines answered."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.engines.loading import Placed, Result
from apps.engines.models import DesiredAdapter, Engine, EngineState, LoadedAdapter, LoadState
from kernel.errors import Conflict

_REASON = 500  # as long as the column


def register(*, urls: Sequence[str] | None = None) -> list[Engine]:
    """Make a row for each configured engine and return them; engines no longer configured get no requests."""
    wanted = [url.rstrip("/") for url in (settings.ENGINE_URLS if urls is None else urls)]
    for url in wanted:
        Engine.objects.get_or_create(url=url)
    Engine.objects.exclude(url__in=wanted).update(state=EngineState.DRAINING, reason="no longer configured")
    Engine.objects.filter(url__in=wanted, state=EngineState.DRAINING).update(
        state=EngineState.STARTING, reason="configured again"
    )
    return list(Engine.objects.filter(url__in=wanted).order_by("url"))


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
