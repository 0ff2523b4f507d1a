"""Bring a version onto the engines, and let go of it: what publishing, rollback and evaluation share."""

import asyncio
from collections.abc import Sequence

from apps.adapters import store
from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.adapters.preflight import PreflightRefused
from apps.engines import registry, selectors
from apps.engines.loading import Placed, Result, Wanted, place_everywhere
from apps.engines.models import DesiredAdapter
from apps.engines.probe import Expectation
from apps.engines.replies import AdapterMissing, EngineUnavailable
from kernel.errors import Conflict

DEADLINE_S = 180.0
"""For each engine: load and probe."""


def desire(version: AdapterVersion) -> DesiredAdapter:
    """Ask for the version on every engine, with the values that each must answer."""
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


def place(adapter: DesiredAdapter) -> list[Placed]:
    """Load and probe an adapter on all ready engines at once, and store what each answered.

    Raises EngineUnavailable where no engine is ready.
    """
    urls = [engine.url for engine in selectors.ready_engines()]
    if not urls:
        raise EngineUnavailable("no engine is ready", retry_after_s=5.0)
    registry.note_loading(adapter=adapter, urls=urls)
    placed = asyncio.run(place_everywhere(urls, Wanted.of(adapter), deadline_s=DEADLINE_S))
    for one in placed:
        registry.record(one)
    return placed


def bring_back(version: AdapterVersion) -> None:
    """Have a version that passed its checks earlier answer on every ready engine, or raise why it does not."""
    adapter = desire(version)
    proven = set(selectors.proven_on(version.served_name))
    if proven and proven == {engine.url for engine in selectors.ready_engines()}:
        return
    placed = place(adapter)
    failed = [one for one in placed if one.result is not Result.PROBED]
    if failed:
        kind = Conflict if any(one.result is Result.REFUSED for one in failed) else EngineUnavailable
        raise kind(f"version {version.number} does not answer: {reasons(failed)}")


def engine_for(version: AdapterVersion | None) -> str:
    """Return the engine to ask for a version; None is the bare base.

    A version that passed its checks but is not live any more (an evaluation asks for it by number) is loaded
    if need be, which takes seconds, and not kept. Raises AdapterMissing or EngineUnavailable.
    """
    if version is None:
        return selectors.pick_engine(None)
    try:
        return selectors.pick_engine(version.served_name)
    except AdapterMissing:
        live = Policy.objects.filter(pk=version.policy_id, live=version).exists()
        if live or version.state != VersionState.READY:
            raise  # what is live comes back by reconciling, and requests do not wait for it
    bring_back(version)
    registry.unwant(served_names=[version.served_name])
    return selectors.pick_engine(version.served_name)


def reasons(placed: Sequence[Placed]) -> str:
    """Return what engines said. Their addresses stay in the gate's rows: tenants read this."""
    return "; ".join(dict.fromkeys(one.reason for one in placed))
