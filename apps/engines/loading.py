"""Bring one adapter onto engines: load, then prove by log-probabilities that it is what answers."""

import asyncio
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from apps.engines.client import EngineClient
from apps.engines.models import DesiredAdapter
from apps.engines.probe import Expectation, judge, measure
from apps.engines.replies import EngineRejected, EngineUnavailable
from kernel.errors import AttuneError

LOAD_S = 60.0
PROBE_S = 120.0
_ATTEMPTS = 3
"""Measurements, where other work in the same batches made the engine differ from itself."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An adapter to be served, free of the database."""

    served_name: str
    path: str
    rank: int
    probe: list[Expectation]

    @classmethod
    def of(cls, row: DesiredAdapter) -> "Wanted":
        """Return what a row says."""
        return cls(row.served_name, row.path, row.rank, Expectation.listed(row.probe))


class Result(enum.Enum):
    """How bringing an adapter onto an engine ended."""

    PROBED = "probed"
    REFUSED = "refused"
    """The engine or the probe said no: the same would happen again."""
    UNAVAILABLE = "unavailable"
    """The engine did not answer in time: says nothing about the adapter."""


@dataclass(frozen=True, slots=True)
class Placed:
    """What one engine answered about one adapter."""

    url: str
    served_name: str
    result: Result
    boot_id: str = ""
    reason: str = ""
    probe: Mapping[str, Any] = field(default_factory=dict)


def client_of(url: str) -> EngineClient:
    """Return a client for one piece of work: its connections live as long as that work's event loop."""
    return EngineClient(
        url, settings.ENGINE_API_KEY, settings.ENGINE_ADMIN_KEY, timeout_s=settings.ENGINE_TIMEOUT_S
    )


async def place(client: EngineClient, wanted: Wanted, *, deadline_s: float = LOAD_S + PROBE_S) -> Placed:
    """Load and probe within `deadline_s`. Never raises for what an engine does."""
    boot_id = ""
    try:
        async with asyncio.timeout(deadline_s):
            info = await client.info()
            boot_id = info.boot_id
            if wanted.rank > info.max_lora_rank:
                return Placed(
                    client.url,
                    wanted.served_name,
                    Result.REFUSED,
                    boot_id,
                    f"rank {wanted.rank} is larger than the server's {info.max_lora_rank}",
                )
            await client.load(wanted.served_name, wanted.path, timeout_s=LOAD_S)
            return await prove(client, wanted, boot_id)
    except EngineRejected as error:
        return Placed(client.url, wanted.served_name, Result.REFUSED, boot_id, error.message)
    except TimeoutError:
        reason = f"not loaded and probed within {deadline_s:.0f} s"
        return Placed(client.url, wanted.served_name, Result.UNAVAILABLE, boot_id, reason)
    except AttuneError as error:
        return Placed(client.url, wanted.served_name, Result.UNAVAILABLE, boot_id, error.message)


async def prove(client: EngineClient, wanted: Wanted, boot_id: str) -> Placed:
    """Probe an adapter that is loaded. Raises what the client raises."""
    for _ in range(_ATTEMPTS):
        measured = await measure(client, wanted.served_name, wanted.probe, timeout_s=PROBE_S)
        verdict = judge(wanted.probe, measured, tolerance=settings.PROBE_TOLERANCE)
        if verdict.passed or verdict.noise == 0.0:
            break
    if await client.boot_id() != boot_id:
        raise EngineUnavailable("the engine restarted while it was probed")
    return Placed(
        client.url,
        wanted.served_name,
        Result.PROBED if verdict.passed else Result.REFUSED,
        boot_id,
        verdict.reason,
        verdict.as_json(),
    )


async def place_everywhere(urls: Sequence[str], wanted: Wanted, *, deadline_s: float) -> list[Placed]:
    """Bring an adapter onto several engines at the same time, each with its own deadline."""

    async def on(url: str) -> Placed:
        async with client_of(url) as client:
            return await place(client, wanted, deadline_s=deadline_s)

    return list(await asyncio.gather(*(on(url) for url in urls)))
