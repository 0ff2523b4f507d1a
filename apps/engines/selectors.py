"""Which engine answers a request, and what is where."""

import hashlib
import secrets
from collections.abc import Sequence

from django.db.models import F

from apps.engines.models import Engine, EngineState, LoadedAdapter, LoadState
from apps.engines.replies import AdapterMissing, EngineUnavailable


def ready_engines() -> list[Engine]:
    """Return the engines that may be sent requests."""
    return list(Engine.objects.filter(state=EngineState.READY).order_by("url"))


def proven_on(served_name: str) -> list[str]:
    """Return the addresses of ready engines on which this adapter answered its probe since their last boot."""
    rows = LoadedAdapter.objects.filter(
        adapter__served_name=served_name,
        state=LoadState.PROBED,
        engine__state=EngineState.READY,
        boot_id=F("engine__boot_id"),
    )
    return sorted(rows.values_list("engine__url", flat=True))


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


def steady_choice(urls: Sequence[str], served_name: str | None) -> str:
    """Return one of `urls`: for an adapter the same as long as it is among them, for the bare base any."""
    if served_name is None:
        return secrets.choice(urls)
    return max(urls, key=lambda url: _weight(url, served_name))


def _weight(url: str, name: str) -> bytes:
    # rendezvous hashing: a lost engine moves only the adapters that were on it
    return hashlib.sha256(f"{url}\n{name}".encode()).digest()
