"""Bring a version onto the engines, and let go of it: what publishing, rollback and evaluation share."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import connection

from apps.adapters import store
from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.adapters.preflight import PreflightRefused
from apps.engines import registry, selectors
from apps.engines.loading import Placed, Result, Wanted, place_everywhere
from apps.engines.models import DesiredAdapter
from apps.engines.probe import Expectation
from apps.engines.replies import AdapterMissing, AdapterRefused, EngineUnavailable
from apps.engines.room import make_room
from kernel.errors import AttuneError, Conflict

DEADLINE_S = 180.0
"""For each engine: load and probe."""


def desire(version: AdapterVersion) -> DesiredAdapter:
    """Ask for the version on the engines, with the values that each must answer."""
    directory = store.absolute(version.path)
    probe = store.manifest(directory).get("probe") or []
    try:
        Expectation.listed(probe)
    except (KeyError, TypeError, ValueError) as error:
        raise PreflightRefused(f"the manifest's probe values are of no use: {error}") from error
    return registry.want(
        tenant_id=version.tenant_id,
        served_name=version.served_name,
        path=str(directory),
        sha256=version.sha256,
        rank=version.rank,
        probe=probe,
    )


def place(adapter: DesiredAdapter, *, urls: Sequence[str] | None = None) -> list[Placed]:
    """Load and probe an adapter on all engines of its placement at once, and store what each answered.

    Raises EngineUnavailable where no engine is ready.
    """
    if urls is None:
        urls = selectors.placement_of(adapter.served_name)
    if not urls:
        raise EngineUnavailable("no engine is ready", retry_after_s=5.0)
    registry.note_loading(adapter=adapter, urls=urls)
    crowded = [full for url in urls if (full := _without_room(url, adapter)) is not None]
    free = [url for url in urls if url not in {one.url for one in crowded}]
    placed = [*crowded, *asyncio.run(place_everywhere(free, Wanted.of(adapter), deadline_s=DEADLINE_S))]
    for one in placed:
        registry.record(one)
    return placed


def _without_room(url: str, adapter: DesiredAdapter) -> Placed | None:
    """Make room on an engine; returns why there is none."""
    try:
        make_room(url, for_name=adapter.served_name)
    except AttuneError as error:
        return Placed(url, adapter.served_name, Result.UNAVAILABLE, reason=error.message)
    return None


def bring_back(version: AdapterVersion) -> None:
    """Have a version that passed its checks earlier answer on every engine of its
    placement, or raise why not."""
    adapter = desire(version)
    urls = selectors.placement_of(version.served_name)
    missing = [url for url in urls if url not in selectors.proven_on(version.served_name)]
    if urls and not missing:
        return
    _all_answer(version, place(adapter, urls=missing or None))


def engine_for(version: AdapterVersion | None) -> str:
    """Return the engine to ask for a version; None is the bare base.

    A version that is loaded nowhere is loaded, which takes seconds: a live one whose policy went cold while
    there are more policies than places, on the engine that its policy prefers; one that is not live (an
    evaluation asks for it by number) likewise, and it is not kept. Raises Conflict (the version is not
    ready), AdapterMissing, EngineUnavailable or EngineBusy.
    """
    if version is None:
        return selectors.pick_engine(None)
    try:
        return selectors.pick_engine(version.served_name)
    except AdapterMissing:
        if version.state != VersionState.READY:
            raise Conflict(
                f"version {version.number} is {version.state}, only ready ones can be served",
                field="model",
                code="version_not_ready",
            ) from None
    with _alone(version.served_name):
        proven = selectors.proven_on(version.served_name)
        if not proven:
            _warm(version)
    return selectors.pick_engine(version.served_name)


def _warm(version: AdapterVersion) -> None:
    urls = [engine.url for engine in selectors.ready_engines()]
    if selectors.refused_on(version.served_name, urls):
        # an engine has said since its boot that this is not what it serves:
        # reconciling asks it again, requests do not
        raise AdapterRefused("no engine serves this version as it was trained", retry_after_s=5.0)
    adapter = desire(version)
    try:
        _all_answer(version, place(adapter, urls=selectors.ranked(urls, version.served_name)[:1]))
    finally:
        if not Policy.objects.filter(pk=version.policy_id, live=version).exists():
            registry.unwant(served_names=[version.served_name])


def _all_answer(version: AdapterVersion, placed: Sequence[Placed]) -> None:
    failed = [one for one in placed if one.result is not Result.PROBED]
    if failed:
        kind = Conflict if any(one.result is Result.REFUSED for one in failed) else EngineUnavailable
        raise kind(f"version {version.number} does not answer: {reasons(failed)}")


@contextmanager
def _alone(served_name: str) -> Iterator[None]:
    """Let one process at a time load an adapter that many requests may be waiting for."""
    # no transaction: what is unloaded meanwhile must be seen by others before it goes
    key = f"attune:warm:{served_name}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext(%s))", [key])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(hashtext(%s))", [key])


def reasons(placed: Sequence[Placed]) -> str:
    """Return what engines said. Their addresses stay in the gate's rows: tenants read this."""
    return "; ".join(dict.fromkeys(one.reason for one in placed))
