"""Which engine answers a request, and what is where."""

import hashlib
import secrets
from collections.abc import Callable, Sequence

from django.db.models import F

from apps.engines.models import DesiredAdapter, Engine, EngineState, LoadedAdapter, LoadState
from apps.engines.replies import AdapterMissing, EngineUnavailable
from kernel.tenancy import system_scope

_CROWDED = 1.25
_SOME = 4


def ready_engines() -> list[Engine]:
    """Return the engines that may be sent requests."""
    return list(Engine.objects.filter(state=EngineState.READY).order_by("url"))


def proven_on(served_name: str) -> list[str]:
    """Return the addresses of ready engines on which this adapter answered its
    probe since their last boot."""
    rows = LoadedAdapter.objects.filter(
        adapter__served_name=served_name,
        state=LoadState.PROBED,
        engine__state=EngineState.READY,
        boot_id=F("engine__boot_id"),
    )
    return sorted(rows.values_list("engine__url", flat=True))


def refused_on(served_name: str, urls: Sequence[str]) -> bool:
    """Return whether one of these engines has said, since its last boot,
    that it does not serve this adapter."""
    return LoadedAdapter.objects.filter(
        adapter__served_name=served_name,
        state=LoadState.FAILED,
        engine__url__in=urls,
        boot_id=F("engine__boot_id"),
    ).exists()


def placement_of(served_name: str) -> list[str]:
    """Return the ready engines that should have an adapter: all, where each has room for all that are wanted.

    Where there are more, so many that all the places together suffice, and at least one; the rest is loaded
    where and when it is asked for.
    """
    engines = ready_engines()
    with system_scope("what all tenants want on the engines"):
        wanted = DesiredAdapter.objects.filter(wanted=True).count()
    if not engines or any(engine.max_loaded_loras == 0 for engine in engines):
        return [engine.url for engine in engines]
    places = [engine.max_loaded_loras for engine in engines]
    copies = len(engines) if wanted <= min(places) else min(len(engines), max(1, sum(places) // wanted))
    return sorted(ranked([engine.url for engine in engines], served_name)[:copies])


def pick_engine(served_name: str | None) -> str:
    """Return the address of the engine to ask; None is the bare base.

    The same adapter goes to the same engine as long as that is ready: its prefix cache and adapter slot are
    warm there. Raises AdapterMissing or EngineUnavailable.
    """
    if served_name is None:
        ready = [engine.url for engine in ready_engines()]
        if ready:
            return steady_choice(ready, None)
    elif proven := proven_on(served_name):
        return steady_choice(proven, served_name)
    elif Engine.objects.filter(state=EngineState.READY).exists():
        raise AdapterMissing("no engine has this policy's adapter loaded right now", retry_after_s=5.0)
    raise EngineUnavailable("no engine is ready", retry_after_s=5.0)


def steady_choice(
    urls: Sequence[str], served_name: str | None, running: Callable[[str], int] | None = None
) -> str:
    """Return one of `urls`: for the versions of a policy the same as long as it is there and not crowded.

    `running` says how many requests an engine has in work. The bare base goes where the fewest are; a policy
    moves to its next engine while its own has `_CROWDED` times as many as the others, and some more.
    """
    load = {url: running(url) for url in urls} if running is not None else dict.fromkeys(urls, 0)
    if served_name is None:
        least = min(load.values())
        return secrets.choice([url for url in urls if load[url] == least])
    bound = _CROWDED * sum(load.values()) / len(urls) + _SOME
    order = ranked(urls, served_name)
    return next((url for url in order if load[url] <= bound), order[0])


def ranked(urls: Sequence[str], served_name: str) -> list[str]:
    """Return engines in the order in which a policy prefers them; all its versions prefer the same."""
    policy = served_name.rpartition("-v")[0] or served_name
    return sorted(urls, key=lambda url: _weight(url, policy), reverse=True)


def _weight(url: str, name: str) -> bytes:
    # rendezvous hashing: a lost engine moves only the adapters that were on it
    return hashlib.sha256(f"{url}\n{name}".encode()).digest()
