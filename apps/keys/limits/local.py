"""The limits as one process keeps them alone, while Redis is away."""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from apps.keys.limits.rules import Allowance, Permit, refusal

_FORGET_AFTER_S = 120.0  # a bucket that nobody took from for so long is full again
_MOST = 10_000


@dataclass(slots=True)
class _Bucket:
    requests: float
    tokens: float
    at: float
    running: set[str] = field(default_factory=set)


class LocalLimits:
    """The same rules as the script's (`shared.py`), for this process's requests only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}

    def take(self, permit: Permit) -> None:
        """Take what the permit says from the key and the tenant, or raise RateLimited and take nothing."""
        now = self._clock()
        self._forget(now)
        sides = [
            ("key", self._filled(f"k{permit.key_id}", permit.rules.key, now), permit.rules.key),
            ("tenant", self._filled(f"t{permit.tenant_id}", permit.rules.tenant, now), permit.rules.tenant),
        ]
        for whose, bucket, allowance in sides:
            _check(whose, bucket, allowance, permit.tokens)
        remaining: dict[str, list[float]] = defaultdict(list)
        for _, bucket, allowance in sides:
            bucket.requests -= 1
            bucket.tokens -= permit.tokens
            bucket.running.add(permit.id)
            if allowance.requests:
                remaining["requests"].append(bucket.requests)
            if allowance.tokens:
                remaining["tokens"].append(bucket.tokens)
        permit.is_local = True
        permit.remaining = (
            max(0, int(min(remaining["requests"], default=0))),
            max(0, int(min(remaining["tokens"], default=0))),
        )

    def give_back(self, permit: Permit) -> None:
        """Undo what was too much, and count one running request less."""
        for name in (f"k{permit.key_id}", f"t{permit.tenant_id}"):
            bucket = self._buckets.get(name)
            if bucket is not None:
                bucket.running.discard(permit.id)
                bucket.tokens += permit.tokens - (permit.used or 0)

    def _filled(self, name: str, allowance: Allowance, now: float) -> _Bucket:
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = _Bucket(allowance.requests, allowance.tokens, now)
        passed = now - bucket.at
        bucket.requests = min(allowance.requests, bucket.requests + passed * allowance.requests / 60)
        bucket.tokens = min(allowance.tokens, bucket.tokens + passed * allowance.tokens / 60)
        bucket.at = now
        return bucket

    def _forget(self, now: float) -> None:
        if len(self._buckets) > _MOST:
            for name, bucket in list(self._buckets.items()):
                if not bucket.running and now - bucket.at > _FORGET_AFTER_S:
                    del self._buckets[name]


def _check(whose: str, bucket: _Bucket, allowance: Allowance, tokens: int) -> None:
    needed = min(tokens, allowance.tokens)
    if allowance.concurrent and len(bucket.running) >= allowance.concurrent:
        raise refusal(what="concurrent", whose=whose, allowance=allowance, wait_ms=1000)
    if allowance.requests and bucket.requests < 1:
        wait_ms = (1 - bucket.requests) * 60_000 / allowance.requests
        raise refusal(what="requests", whose=whose, allowance=allowance, wait_ms=wait_ms)
    if allowance.tokens and bucket.tokens < needed:
        wait_ms = (needed - bucket.tokens) * 60_000 / allowance.tokens
        raise refusal(what="tokens", whose=whose, allowance=allowance, wait_ms=wait_ms)
