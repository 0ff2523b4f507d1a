"""The limits as all processes share them, in Redis: one script each way, atomic, on Redis' own clock.

Of a key and of a tenant there is a hash (what is left, since when) and a sorted set of running requests,
which end by themselves where a gateway died with them. All four keys of a request lie in one slot of a
cluster.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import redis.asyncio
from redis.exceptions import NoScriptError

from apps.keys.limits.rules import Permit

# KEYS: bucket and running of the key, bucket and running of the tenant. ARGV: permit, lease (ms), tokens,
# then requests, tokens and concurrent of the key and of the tenant. Returns {0, remaining requests, remaining
# tokens} or
# {1 or 2: whose, 1 to 3: what, wait (ms)}
_TAKE = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local tokens = tonumber(ARGV[3])
local left = {}
local requests_left, tokens_left = -1, -1
for side = 1, 2 do
    local most, budget, together = tonumber(ARGV[3 * side + 1]), tonumber(ARGV[3 * side + 2]), tonumber(ARGV[3 * side + 3])
    if together > 0 then
        redis.call('ZREMRANGEBYSCORE', KEYS[2 * side], '-inf', now)
        if redis.call('ZCARD', KEYS[2 * side]) >= together then return {side, 3, 1000} end
    end
    local stored = redis.call('HMGET', KEYS[2 * side - 1], 'requests', 'tokens', 'at')
    local passed = math.max(0, now - (tonumber(stored[3]) or now))
    local requests = math.min(most, (tonumber(stored[1]) or most) + passed * most / 60000)
    local room = math.min(budget, (tonumber(stored[2]) or budget) + passed * budget / 60000)
    local needed = math.min(tokens, budget)
    if most > 0 and requests < 1 then return {side, 1, math.ceil((1 - requests) * 60000 / most)} end
    if budget > 0 and room < needed then return {side, 2, math.ceil((needed - room) * 60000 / budget)} end
    left[side] = {requests - 1, room - tokens}
    if most > 0 and (requests_left < 0 or requests - 1 < requests_left) then requests_left = requests - 1 end
    if budget > 0 and (tokens_left < 0 or room - tokens < tokens_left) then tokens_left = math.max(0, room - tokens) end
end
for side = 1, 2 do
    redis.call('HSET', KEYS[2 * side - 1], 'requests', left[side][1], 'tokens', left[side][2], 'at', now)
    redis.call('EXPIRE', KEYS[2 * side - 1], 120)
    if tonumber(ARGV[3 * side + 3]) > 0 then
        redis.call('ZADD', KEYS[2 * side], now + ARGV[2], ARGV[1])
        redis.call('PEXPIRE', KEYS[2 * side], ARGV[2])
    end
end
return {0, math.floor(requests_left), math.floor(tokens_left)}
"""

# KEYS as above. ARGV: permit, tokens to give back
_GIVE_BACK = """
for side = 1, 2 do
    redis.call('ZREM', KEYS[2 * side], ARGV[1])
    if redis.call('EXISTS', KEYS[2 * side - 1]) == 1 then
        redis.call('HINCRBYFLOAT', KEYS[2 * side - 1], 'tokens', ARGV[2])
    end
end
"""

Command = tuple[str, list[str], list[str]]
"""A script's digest, its keys and its arguments."""


def _digest(script: str) -> str:
    return hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()


_TAKE_DIGEST, _GIVE_BACK_DIGEST = _digest(_TAKE), _digest(_GIVE_BACK)


def take_command(permit: Permit, *, lease_s: float) -> Command:
    """Return the command that asks for a permit."""
    allowances = (permit.rules.key, permit.rules.tenant)
    numbers = [str(n) for one in allowances for n in (one.requests, one.tokens, one.concurrent)]
    return _TAKE_DIGEST, _keys(permit), [permit.id, str(int(lease_s * 1000)), str(permit.tokens), *numbers]


def give_back_command(permit: Permit) -> Command:
    """Return the command that gives one back."""
    return _GIVE_BACK_DIGEST, _keys(permit), [permit.id, str(permit.tokens - (permit.used or 0))]


async def sent(connection: "redis.asyncio.Redis", commands: Sequence[Command]) -> list[Any]:
    """Send commands in one round trip; returns what each was answered. Raises redis.RedisError or OSError."""
    answers = await _piped(connection, commands)
    if any(isinstance(answer, NoScriptError) for answer in answers):
        # a new server knows no scripts; those that were refused changed nothing
        for script in (_TAKE, _GIVE_BACK):
            await connection.script_load(script)
        again = [i for i, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
        for i, answer in zip(again, await _piped(connection, [commands[i] for i in again]), strict=True):
            answers[i] = answer
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers


async def _piped(connection: "redis.asyncio.Redis", commands: Sequence[Command]) -> list[Any]:
    pipe = connection.pipeline(transaction=False)
    for digest, keys, arguments in commands:
        pipe.evalsha(digest, len(keys), *keys, *arguments)
    return list(await pipe.execute(raise_on_error=False))


def _keys(permit: Permit) -> list[str]:
    tenant, key = f"attune:limits:{{{permit.tenant_id.hex}}}", permit.key_id.hex
    return [f"{tenant}:{key}", f"{tenant}:{key}:running", tenant, f"{tenant}:running"]
