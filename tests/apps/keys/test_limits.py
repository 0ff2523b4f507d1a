"""Limits on requests, tokens and concurrency: shared through Redis, kept alone without it."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import redis

from apps.keys.limits import Allowance, Limits, Permit, Rules
from apps.keys.limits.local import LocalLimits
from embedded.home import free_port
from kernel.errors import RateLimited

FREE = Allowance(requests=0, tokens=0, concurrent=0)
Start = Callable[..., Limits]


@pytest.fixture
async def limits(valkey: redis.Redis) -> AsyncIterator[Limits]:
    one = Limits(redis_url=os.environ["REDIS_URL"], lease_s=30)
    yield one
    await one.close()


@pytest.fixture
async def other_process(valkey: redis.Redis) -> AsyncIterator[Limits]:
    one = Limits(redis_url=os.environ["REDIS_URL"], lease_s=30)
    yield one
    await one.close()


def caller(tenant: uuid.UUID | None = None) -> dict[str, uuid.UUID]:
    return {"tenant_id": tenant or uuid.uuid4(), "key_id": uuid.uuid4()}


def of_key(requests: int = 0, tokens: int = 0, concurrent: int = 0) -> Rules:
    return Rules(Allowance(requests, tokens, concurrent), FREE)


async def refused(limits: Limits, who: dict[str, uuid.UUID], rules: Rules, tokens: int = 1) -> RateLimited:
    with pytest.raises(RateLimited) as refusal:
        await limits.take(**who, rules=rules, tokens=tokens)
    assert refusal.value.code == "rate_limit_exceeded"
    return refusal.value


def test_of_a_tenant_the_lesser_of_the_operators_and_its_own_holds(settings: Any) -> None:
    settings.TENANT_LIMITS = {"requests": 100, "tokens": 0, "concurrent": 8}
    lent = {"requests": 10, "tokens": None, "concurrent": 0}
    own = {"requests": 50, "tokens": 7, "concurrent": 3}
    assert Rules.of({}).tenant == Allowance(100, 0, 8)
    assert Rules.of({"tenant": lent}).tenant == Allowance(10, 0, 0)
    assert Rules.of({"own": own}).tenant == Allowance(50, 7, 3)
    assert Rules.of({"tenant": lent, "own": own}).tenant == Allowance(10, 7, 3)
    assert Rules.of({"tenant": lent, "own": dict.fromkeys(own, 0)}).tenant == Allowance(10, 0, 0)
    assert Rules.of({"tenant": lent, "own": dict.fromkeys(own)}).tenant == Allowance(10, 0, 0)


async def test_requests_are_counted_over_all_processes(limits: Limits, other_process: Limits) -> None:
    who, rules = caller(), of_key(requests=3)

    remaining = [
        (await one.take(**who, rules=rules, tokens=1)).remaining[0] for one in (limits, other_process, limits)
    ]

    assert remaining == [2, 1, 0]
    error = await refused(other_process, who, rules)
    assert error.message == "This key is limited to 3 requests in a minute."
    assert error.retry_after_s is not None
    assert 19 < error.retry_after_s <= 20
    await limits.take(**caller(), rules=rules, tokens=1)  # another key has its own


async def test_many_at_once_get_exactly_what_there_is(limits: Limits, other_process: Limits) -> None:
    who, rules = caller(), of_key(requests=10)

    outcomes = await asyncio.gather(
        *(one.take(**who, rules=rules, tokens=1) for _ in range(20) for one in (limits, other_process)),
        return_exceptions=True,
    )

    assert sum(isinstance(one, Permit) for one in outcomes) == 10
    assert sum(isinstance(one, RateLimited) for one in outcomes) == 30


async def test_running_requests_are_counted_until_they_end(limits: Limits, other_process: Limits) -> None:
    who, rules = caller(), of_key(concurrent=1)
    permit = await limits.take(**who, rules=rules, tokens=1)
    error = await refused(other_process, who, rules)
    assert error.message == "This key is limited to 1 requests at once."

    limits.give_back(permit)
    await limits.take(**who, rules=rules, tokens=1)


async def test_a_request_of_a_dead_process_ends_with_its_lease(valkey: redis.Redis) -> None:
    who, rules = caller(), of_key(concurrent=1)
    dying = Limits(redis_url=os.environ["REDIS_URL"], lease_s=0.05)
    await dying.take(**who, rules=rules, tokens=1)
    await asyncio.sleep(0.1)

    await dying.take(**who, rules=rules, tokens=1)
    await dying.close()


async def test_tokens_that_were_not_used_come_back(limits: Limits) -> None:
    who, rules = caller(), of_key(tokens=1000)
    permit = await limits.take(**who, rules=rules, tokens=900)
    error = await refused(limits, who, rules, tokens=500)
    assert error.message == "This key is limited to 1000 tokens in a minute."
    permit.used = 100
    limits.give_back(permit)

    again = await limits.take(**who, rules=rules, tokens=500)

    assert 400 <= again.remaining[1] <= 405


async def test_a_request_larger_than_the_limit_waits_for_a_full_bucket(limits: Limits) -> None:
    who, rules = caller(), of_key(tokens=100)

    await limits.take(**who, rules=rules, tokens=500)

    assert (await refused(limits, who, rules)).retry_after_s is not None


async def test_a_tenant_has_one_limit_for_all_its_keys(limits: Limits) -> None:
    tenant = uuid.uuid4()
    rules = Rules(FREE, Allowance(requests=2, tokens=0, concurrent=0))
    for _ in range(2):
        await limits.take(**caller(tenant), rules=rules, tokens=1)

    error = await refused(limits, caller(tenant), rules)
    assert error.message == "This tenant is limited to 2 requests in a minute."
    await limits.take(**caller(), rules=rules, tokens=1)


async def test_who_is_refused_by_the_tenant_loses_nothing_of_the_key(limits: Limits) -> None:
    who = caller()
    tight = Rules(Allowance(5, 0, 0), Allowance(1, 0, 0))
    await limits.take(**who, rules=tight, tokens=1)
    for _ in range(10):
        await refused(limits, who, tight)

    permit = await limits.take(**who, rules=of_key(requests=5), tokens=1)
    assert permit.remaining[0] == 3


async def test_without_redis_each_process_keeps_the_limits_itself() -> None:
    alone = Limits(redis_url=f"redis://127.0.0.1:{free_port()}/0", lease_s=30)
    who, rules = caller(), of_key(requests=2, concurrent=2)

    permits = [await alone.take(**who, rules=rules, tokens=1) for _ in range(2)]

    assert alone.is_alone
    assert [permit.is_local for permit in permits] == [True, True]
    await refused(alone, who, rules)
    await alone.close()


async def test_scripts_that_redis_forgot_are_sent_again(limits: Limits, valkey: redis.Redis) -> None:
    who, rules = caller(), of_key(requests=5)
    await limits.take(**who, rules=rules, tokens=1)
    valkey.script_flush()

    permit = await limits.take(**who, rules=rules, tokens=1)

    assert (permit.remaining[0], permit.is_local) == (3, False)


def test_alone_it_refills_and_counts_as_redis_does() -> None:
    now = 1000.0
    local = LocalLimits(lambda: now)
    who, rules = caller(), of_key(requests=2, tokens=600)

    def take(tokens: int = 100) -> Permit:
        permit = Permit(**who, rules=rules, tokens=tokens)
        local.take(permit)
        return permit

    first, second = take(), take(500)
    assert (first.remaining, second.remaining) == ((1, 500), (0, 0))
    with pytest.raises(RateLimited) as refusal:
        take()
    assert refusal.value.retry_after_s == 30
    now += 30
    with pytest.raises(RateLimited, match="600 tokens"):
        take(600)
    second.used = 100
    local.give_back(second)
    assert take(600).remaining == (0, 0)  # 300 came back by themselves, 400 with the permit
