"""Make what engines have loaded equal to what is wanted: after a restart, on a timer, and when one is gone.

Off every request's path; any number of these may run at once.
"""

import asyncio
import datetime as dt
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils import timezone

from apps.engines.client import EngineInfo
from apps.engines.loading import Placed, Result, Wanted, client_of, place
from apps.engines.models import DesiredAdapter, Engine, EngineState, LoadedAdapter, LoadState
from apps.engines.registry import record, register
from apps.engines.room import drop_unwanted, recycle, usage
from apps.engines.router import tell_router
from apps.engines.selectors import ranked
from kernel.errors import AttuneError
from kernel.tenancy import system_scope

logger = logging.getLogger(__name__)

REPROBE_S = 600.0
"""An adapter that answered its probe is asked again after this long; one that failed too."""
SILENT_S = 60.0
"""An engine that is there but does not answer is sent requests for this long."""
_SPARE = 2
"""Slots for loaded adapters kept free for what is published next: past the last, SGLang evicts on its own."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at an engine."""

    url: str
    ready: bool
    info: EngineInfo | None = None
    loaded: Mapping[str, str] | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What reconciling did with one engine."""

    url: str
    state: str
    restarted: bool
    proven: list[str]
    failed: dict[str, str]
    unloaded: list[str]
    reason: str


def reconcile() -> list[Reconciled]:
    """Look at every configured engine, load and probe what it lacks, and say which may be sent requests.

    An engine that restarted gets no requests until the adapters of live versions are back on it.
    """
    with system_scope("reconcile engines"):
        engines = register()
        seen = {one.url: one for one in asyncio.run(_look_at([engine.url for engine in engines]))}
        there = [url for url, one in seen.items() if one.info is not None]
        tell_router(there, known=set(Engine.objects.values_list("url", flat=True)))
        restarted = {engine.url for engine in engines if _note(engine, seen[engine.url])}
        # what is missing first: what is only due to be asked again delays no engine's return
        urls = [engine.url for engine in engines]
        work = {engine.url: _due(engine, seen[engine.url], urls) for engine in engines}
        placed = asyncio.run(_place_all(work))
        for one in placed:
            record(one)
        return [
            _settle(
                engine,
                seen[engine.url],
                restarted=engine.url in restarted,
                placed=[one for one in placed if one.url == engine.url],
            )
            for engine in engines
        ]


async def _look_at(urls: Sequence[str]) -> list[Seen]:
    async def at(url: str) -> Seen:
        async with client_of(url) as client:
            try:
                if not await client.ready():
                    return Seen(url, ready=False, reason="nobody listens there, or is not ready")
                return Seen(url, ready=True, info=await client.info(), loaded=await client.loaded())
            except AttuneError as error:
                return Seen(url, ready=True, reason=error.message)

    return list(await asyncio.gather(*(at(url) for url in urls)))


def _note(engine: Engine, seen: Seen) -> bool:
    """Store what was seen before anything is loaded, so that nobody asks for what is not there."""
    if not seen.ready:
        engine.state, engine.reason = EngineState.LOST, seen.reason
        engine.save(update_fields=["state", "reason"])
        return False
    if seen.info is None:
        # busy, as a small machine may be for a while; one that stays silent is stuck
        if engine.seen_at is None or engine.seen_at < timezone.now() - dt.timedelta(seconds=SILENT_S):
            engine.state, engine.reason = EngineState.LOST, seen.reason
            engine.save(update_fields=["state", "reason"])
        return False
    restarted = engine.boot_id != seen.info.boot_id
    if restarted:
        engine.state, engine.reason = EngineState.STARTING, "booted: bringing its adapters back"
        engine.recycle_at = engine.restart_asked_at = None
    engine.boot_id = seen.info.boot_id
    engine.model_path = seen.info.model_path
    engine.max_loaded_loras = seen.info.max_loaded_loras
    engine.seen_at = timezone.now()
    fields = ["boot_id", "model_path", "max_loaded_loras", "seen_at"]
    if restarted:
        fields += ["state", "reason", "recycle_at", "restart_asked_at"]
    engine.save(update_fields=fields)
    return restarted


def _due(engine: Engine, seen: Seen, urls: Sequence[str]) -> list[Wanted]:
    """Return the wanted adapters that the engine lacks and has room for,
    and those whose last answer is too old."""
    if seen.info is None or seen.loaded is None or engine.recycle_at is not None:
        return []
    rows = {row.adapter_id: row for row in LoadedAdapter.objects.filter(engine=engine)}
    old = timezone.now() - dt.timedelta(seconds=REPROBE_S)
    missing: list[Wanted] = []
    again: list[Wanted] = []
    for adapter in _first_come_here(engine, urls):
        row = rows.get(adapter.pk)
        answered = (
            row is not None
            and row.state in (LoadState.PROBED, LoadState.FAILED)
            and row.boot_id == seen.info.boot_id
            and (row.state == LoadState.FAILED or adapter.served_name in seen.loaded)
        )
        if not answered:
            missing.append(Wanted.of(adapter))
        elif row is not None and (row.probed_at is None or row.probed_at < old):
            again.append(Wanted.of(adapter))
    if seen.info.max_loaded_loras:
        # never past the last place, where the engine evicts on its own;
        # the rest is loaded when it is asked for
        free, new = seen.info.max_loaded_loras - len(seen.loaded), []
        for wanted in missing:
            free -= wanted.served_name not in seen.loaded
            if free >= 0 or wanted.served_name in seen.loaded:
                new.append(wanted)
        missing = new
    return missing + again


def _first_come_here(engine: Engine, urls: Sequence[str]) -> list[DesiredAdapter]:
    """Return the wanted adapters, those first whose requests come to this engine,
    and of these the last used."""
    wanted = list(DesiredAdapter.objects.filter(wanted=True).order_by("-created_at"))
    if engine.max_loaded_loras and len(wanted) > engine.max_loaded_loras:
        used = usage(engine.url).last_used
        wanted.sort(
            key=lambda one: (
                ranked(urls, one.served_name).index(engine.url),
                -used.get(one.served_name, 0.0),
            )
        )
    return wanted


async def _place_all(work: Mapping[str, Sequence[Wanted]]) -> list[Placed]:
    async def on(url: str, adapters: Sequence[Wanted]) -> list[Placed]:
        async with client_of(url) as client:
            return [await place(client, wanted) for wanted in adapters]

    done = await asyncio.gather(*(on(url, adapters) for url, adapters in work.items()))
    return [one for of_engine in done for one in of_engine]


def _settle(engine: Engine, seen: Seen, *, restarted: bool, placed: Sequence[Placed]) -> Reconciled:
    """Decide whether the engine may be sent requests, and make room on it."""
    proven = [one.served_name for one in placed if one.result is Result.PROBED]
    failed = {one.served_name: one.reason for one in placed if one.result is Result.REFUSED}
    silent = {one.served_name: one.reason for one in placed if one.result is Result.UNAVAILABLE}
    for name, reason in failed.items():
        logger.error("%s does not serve %s: %s", engine.url, name, reason)
    unloaded: list[str] = []
    if engine.recycle_at is not None and seen.info is not None:
        recycle(engine)
    elif seen.info is not None:
        # a busy engine that was ready stays so: only what it has proven is routed to it anyway
        if not silent or engine.state == EngineState.READY:
            engine.state, engine.reason = EngineState.READY, ""
            unloaded = drop_unwanted(engine, {*(seen.loaded or {}), *proven}, spare=_SPARE)
            if engine.recycle_at is not None:
                engine.state = EngineState.RECYCLING
        else:
            engine.reason = next(iter(silent.values()))[:500]
        Engine.objects.filter(pk=engine.pk, boot_id=seen.info.boot_id).update(
            state=engine.state, reason=engine.reason
        )
    return Reconciled(
        url=engine.url,
        state=engine.state,
        restarted=restarted,
        proven=proven,
        failed=failed | silent,
        unloaded=unloaded,
        reason=engine.reason or seen.reason,
    )
