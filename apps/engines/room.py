"""Room on engines: unload late, never what a request uses, and restart an engine that does not let go.

The only place that unloads. A request whose adapter goes at the wrong moment is still answered by the right
one: names are immutable, and an engine loads what is asked for again from where it was.
"""

import asyncio
import datetime as dt
import logging
import shlex
import subprocess
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import redis
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.engines.loading import client_of
from apps.engines.models import DesiredAdapter, Engine, EngineState, LoadedAdapter, LoadState
from apps.engines.replies import EngineBusy, EngineSilent
from apps.engines.slots.shared import in_use, last_used
from kernel.errors import AttuneError
from kernel.tenancy import system_scope

logger = logging.getLogger(__name__)

UNLOAD_S = 30.0
"""An engine that does not let go of an adapter within this long is stuck: it is restarted."""
RESTART_AGAIN_S = 180.0
"""A restart that has led to nothing is asked for again after this long."""
_ADMITTED_S = 0.3
"""A request is admitted, then takes its seat: so long nobody sees that it uses the adapter."""
_REDIS_S = 2.0
_COMMAND_S = 60.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What requests do with the adapters of one engine, by the word of all processes that send them."""

    in_use: frozenset[str] = frozenset()
    last_used: Mapping[str, float] = field(default_factory=dict)
    known: bool = False


def usage(url: str) -> Usage:
    """Return which adapters requests use now and used last; not known while Redis does not answer."""
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=_REDIS_S) as connection:
            used = frozenset(in_use(connection, engine=url, now=time.time()))
            return Usage(used, last_used(connection, engine=url), known=True)
    except (redis.RedisError, OSError):
        return Usage()


def drop_unwanted(engine: Engine, loaded: Collection[str], *, spare: int) -> list[str]:
    """Unload what nobody has asked for since the longest possible request, so that `spare` places are free.

    The longest unwanted go first. Returns what was unloaded.
    """
    too_many = len(loaded) + spare - engine.max_loaded_loras
    if engine.max_loaded_loras == 0 or too_many <= 0:
        return []
    idle = timezone.now() - dt.timedelta(seconds=settings.ENGINE_TIMEOUT_S)
    rows = DesiredAdapter.objects.filter(served_name__in=loaded, wanted=False, unwanted_at__lt=idle).order_by(
        "unwanted_at"
    )
    return _unload_some(engine, [row.pk for row in rows], too_many)


def make_room(url: str, *, for_name: str) -> None:
    """See that an engine has a place for one more adapter: the least recently used one that nobody uses goes.

    Raises EngineBusy where all are in use, or what the engine raises.
    """
    with system_scope("make room among all tenants' adapters"):
        loaded = asyncio.run(_loaded_on(url))
        engine = Engine.objects.get(url=url)
        too_many = len(loaded) + 1 - engine.max_loaded_loras
        if engine.max_loaded_loras == 0 or for_name in loaded or too_many <= 0:
            return
        unloaded = drop_unwanted(engine, loaded, spare=1)
        if len(unloaded) >= too_many:
            return
        used = usage(url).last_used
        rows = sorted(
            DesiredAdapter.objects.filter(served_name__in=set(loaded) - set(unloaded)).exclude(
                served_name=for_name
            ),
            key=lambda row: (row.wanted, used.get(row.served_name, 0.0), row.created_at),
        )
        unloaded += _unload_some(engine, [row.pk for row in rows], too_many - len(unloaded))
        if len(unloaded) < too_many:
            raise EngineBusy("every adapter that the engine has loaded is in use", retry_after_s=2.0)


def recycle(engine: Engine) -> None:
    """Have a stuck engine restarted once its requests have ended, or have had the time to.

    Without `ENGINE_RESTART_COMMAND` it waits for an operator in the state `recycling`. A new boot ends that
    state.
    """
    if engine.recycle_at is None:
        return
    now = timezone.now()
    engine.state = EngineState.RECYCLING
    Engine.objects.filter(pk=engine.pk).update(state=engine.state, reason=engine.reason)
    requests = usage(engine.url)
    drained = requests.known and not requests.in_use
    if not drained and now < engine.recycle_at + dt.timedelta(seconds=settings.ENGINE_TIMEOUT_S):
        return
    again = now - dt.timedelta(seconds=RESTART_AGAIN_S)
    due = Q(restart_asked_at=None) | Q(restart_asked_at__lt=again)
    if not Engine.objects.filter(due, pk=engine.pk, boot_id=engine.boot_id).update(restart_asked_at=now):
        return
    if not settings.ENGINE_RESTART_COMMAND:
        logger.error("%s is stuck and must be restarted by hand: %s", engine.url, engine.reason)
        return
    command = [*shlex.split(settings.ENGINE_RESTART_COMMAND), engine.url]
    try:
        subprocess.run(command, check=True, timeout=_COMMAND_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        logger.exception("%s could not be restarted", engine.url)


def _unload_some(engine: Engine, pks: Sequence[uuid.UUID], count: int) -> list[str]:
    busy = usage(engine.url)
    unloaded: list[str] = []
    for pk in pks:
        if len(unloaded) == count or engine.recycle_at is not None:
            break
        if name := _unload(engine, pk, busy=busy):
            unloaded.append(name)
    return unloaded


def _unload(engine: Engine, pk: uuid.UUID, *, busy: Usage) -> str | None:
    row = DesiredAdapter.objects.get(pk=pk)
    # an engine that is told to let go of what it uses may not, and is restarted:
    # while nobody knows, nobody is told
    if row.served_name in busy.in_use or (row.wanted and not busy.known):
        return None
    if row.wanted:
        # requests stop coming here first; those that were on their way take their seats
        load = LoadedAdapter.objects.filter(engine=engine, adapter=row)
        before = list(load.values_list("state", flat=True))
        load.update(state=LoadState.UNLOADED, updated_at=timezone.now())
        time.sleep(_ADMITTED_S)
        now = usage(engine.url)
        if row.served_name in now.in_use or not now.known:
            load.filter(state=LoadState.UNLOADED).update(state=before[0] if before else LoadState.UNLOADED)
            return None
    # the row stays locked until the engine has let go: whoever wants the adapter back waits, then loads it
    with transaction.atomic():
        locked = DesiredAdapter.objects.select_for_update().filter(pk=pk, wanted=row.wanted).first()
        if locked is None:
            return None
        LoadedAdapter.objects.filter(engine=engine, adapter=row).update(
            state=LoadState.UNLOADED, updated_at=timezone.now()
        )
        try:
            asyncio.run(_unload_from(engine.url, row.served_name))
        except EngineSilent:
            _mark_stuck(engine, f"it did not let go of {row.served_name} within {UNLOAD_S:.0f} s")
            return None
        except AttuneError as error:
            logger.warning("%s did not unload %s: %s", engine.url, row.served_name, error.message)
            return None
        return row.served_name


def _mark_stuck(engine: Engine, reason: str) -> None:
    logger.error("%s is stuck: %s", engine.url, reason)
    engine.state, engine.reason = EngineState.RECYCLING, reason
    engine.recycle_at, engine.restart_asked_at = timezone.now(), None
    engine.save(update_fields=["state", "reason", "recycle_at", "restart_asked_at"])


async def _loaded_on(url: str) -> dict[str, str]:
    async with client_of(url) as client:
        return await client.loaded()


async def _unload_from(url: str, served_name: str) -> None:
    async with client_of(url) as client:
        await client.unload(served_name, timeout_s=UNLOAD_S)
