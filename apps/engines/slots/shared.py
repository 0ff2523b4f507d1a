"""What the gateway processes tell each other about one engine's slots, in Redis.

One hash per engine: a field per process with its standing, and a counter of changes. A process that takes
slots writes only if nobody has written since it read. A process that stops writing counts as gone after
`ALIVE_S`. Losing all of it loses nothing: every process writes its standing anew with its next look.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import redis
import redis.asyncio

from apps.engines.slots.rules import BASE, Claim, Standing

ALIVE_S = 3.0
_CHANGES = "changes"

# KEYS: standings, times of last use. ARGV: expected number of changes or "", process, standing or "",
# now (s), number of gone processes, their names, names of adapters in use
_WRITE = """
local changes = redis.call('HGET', KEYS[1], 'changes') or '0'
if ARGV[1] ~= '' and ARGV[1] ~= changes then return 0 end
if ARGV[3] == '' then redis.call('HDEL', KEYS[1], ARGV[2]) else redis.call('HSET', KEYS[1], ARGV[2], ARGV[3]) end
local gone = tonumber(ARGV[5])
for i = 6, 5 + gone do redis.call('HDEL', KEYS[1], ARGV[i]) end
redis.call('HINCRBY', KEYS[1], 'changes', 1)
redis.call('EXPIRE', KEYS[1], 600)
for i = 6 + gone, #ARGV do redis.call('ZADD', KEYS[2], ARGV[4], ARGV[i]) end
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1001)
return 1
"""


@dataclass(frozen=True, slots=True)
class Look:
    """What other processes said, and at which change."""

    changes: str
    others: Mapping[str, Standing]
    gone: tuple[str, ...] = ()


class SharedStandings:
    """The standings of one engine, as one process sees them."""

    def __init__(self, connection: "redis.asyncio.Redis", *, engine: str, process: str) -> None:
        self._redis = connection
        self._process = process
        self._keys = (_standings_key(engine), _uses_key(engine))
        self._write = connection.register_script(_WRITE)

    async def look(self, now: float) -> Look:
        """Return what the others say. Raises redis.RedisError or OSError."""
        fields = _bytes(await self._redis.hgetall(self._keys[0]))
        changes = fields.pop(_CHANGES.encode(), b"0").decode()
        others, gone = _read(fields, now)
        others.pop(self._process, None)
        return Look(changes, others, tuple(name for name in gone if name != self._process))

    async def tell(self, standing: Standing, *, now: float, look: Look, only_if_unchanged: bool) -> bool:
        """Say what this process holds and waits for;
        False where another one was faster, then nothing was said."""
        nothing = not standing.held and not standing.waiting
        value = b"" if nothing else _written(standing, now)
        expected = look.changes if only_if_unchanged else ""
        arguments: list[str | bytes | float] = [expected, self._process, value, now, len(look.gone)]
        arguments += [*look.gone, *standing.held]
        return bool(await self._write(keys=list(self._keys), args=arguments))


def in_use(connection: redis.Redis, *, engine: str, now: float) -> set[str]:
    """Return the adapters that requests on an engine use or wait for, by all processes' word."""
    fields = _bytes(connection.hgetall(_standings_key(engine)))
    fields.pop(_CHANGES.encode(), None)
    standings, _ = _read(fields, now)
    return {name for standing in standings.values() for name in (*standing.held, *standing.waiting)} - {BASE}


def last_used(connection: redis.Redis, *, engine: str) -> dict[str, float]:
    """Return when requests last used which adapter on an engine, seconds since 1970."""
    pairs: Any = connection.zrange(_uses_key(engine), 0, -1, withscores=True)
    return {name.decode(): float(at) for name, at in pairs}


def _bytes(answer: Any) -> dict[bytes, bytes]:
    # the connections are made without decoding; the library's types allow for both
    return dict(answer)


def _read(fields: Mapping[bytes, bytes], now: float) -> tuple[dict[str, Standing], list[str]]:
    alive: dict[str, Standing] = {}
    gone: list[str] = []
    for process, value in fields.items():
        said = orjson.loads(value)
        if said["at"] < now - ALIVE_S:
            gone.append(process.decode())
            continue
        alive[process.decode()] = Standing(
            *({name: Claim(*claim) for name, claim in said[kind].items()} for kind in ("held", "waiting"))
        )
    return alive, gone


def _written(standing: Standing, now: float) -> bytes:
    return orjson.dumps(
        {
            "at": now,
            "held": {name: [claim.tenant, claim.at, claim.pausable] for name, claim in standing.held.items()},
            "waiting": {name: [claim.tenant, claim.at] for name, claim in standing.waiting.items()},
        }
    )


def _standings_key(engine: str) -> str:
    # braces: a cluster keeps both keys on one node, where one script may touch both
    return f"attune:slots:{{{_short(engine)}}}"


def _uses_key(engine: str) -> str:
    return f"attune:slots:{{{_short(engine)}}}:used"


def _short(engine: str) -> str:
    return hashlib.sha256(engine.encode()).hexdigest()[:16]
