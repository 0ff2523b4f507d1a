"""What is limited, what was granted, and how a client is told."""

import math
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from django.conf import settings

from kernel.errors import RateLimited


@dataclass(frozen=True, slots=True)
class Allowance:
    """Of one key or one tenant. 0 is no limit."""

    requests: int
    """In a minute; as many may come at once after a quiet one."""
    tokens: int
    """Read and written, in a minute."""
    concurrent: int

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None, defaults: Mapping[str, int]) -> Self:
        """Return what is stored, with the platform's defaults where nothing is."""
        values = {**defaults, **{name: value for name, value in (stored or {}).items() if value is not None}}
        return cls(values["requests"], values["tokens"], values["concurrent"])

    def lowered(self, own: Mapping[str, Any] | None) -> "Allowance":
        """Return what holds where less is asked for: the lesser of the two, number by number."""
        less = {name: value or 0 for name, value in (own or {}).items()}
        return Allowance(
            requests=_tighter(self.requests, less.get("requests", 0)),
            tokens=_tighter(self.tokens, less.get("tokens", 0)),
            concurrent=_tighter(self.concurrent, less.get("concurrent", 0)),
        )


@dataclass(frozen=True, slots=True)
class Rules:
    """Both that hold for a request: its key's and its tenant's."""

    key: Allowance
    tenant: Allowance

    @classmethod
    def of(cls, stored: Mapping[str, Mapping[str, Any] | None]) -> Self:
        """Return what `attune_look_up` found of limits."""
        return cls(
            Allowance.of(stored.get("key"), settings.KEY_LIMITS),
            Allowance.of(stored.get("tenant"), settings.TENANT_LIMITS).lowered(stored.get("own")),
        )


@dataclass(slots=True)
class Permit:
    """A request that may run. Has to be given back."""

    tenant_id: uuid.UUID
    key_id: uuid.UUID
    rules: Rules
    tokens: int
    """What was taken for it."""
    remaining: tuple[int, int] = (0, 0)
    """Requests and tokens that the tighter of the two still has, after this one."""
    used: int | None = None
    """What it really took, once that is known; before, none of it counts as used."""
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    is_local: bool = False
    """Whether it was granted by this process alone."""

    @property
    def headers(self) -> dict[str, str]:
        """What a reply says of the limits; nothing where there are none."""
        said: dict[str, str] = {}
        requests = _tighter(self.rules.key.requests, self.rules.tenant.requests)
        tokens = _tighter(self.rules.key.tokens, self.rules.tenant.tokens)
        if requests:
            missing = requests - self.remaining[0]
            said["RateLimit-Limit"] = str(requests)
            said["RateLimit-Remaining"] = str(self.remaining[0])
            said["RateLimit-Reset"] = str(math.ceil(missing * 60 / requests))
        if tokens:
            said["X-RateLimit-Limit-Tokens"] = str(tokens)
            said["X-RateLimit-Remaining-Tokens"] = str(self.remaining[1])
        return said


def refusal(*, what: str, whose: str, allowance: Allowance, wait_ms: float) -> RateLimited:
    """Return the error of a request that is over a limit."""
    limit = {
        "requests": f"{allowance.requests} requests in a minute",
        "tokens": f"{allowance.tokens} tokens in a minute",
        "concurrent": f"{allowance.concurrent} requests at once",
    }[what]
    return RateLimited(
        f"This {whose} is limited to {limit}.",
        code="rate_limit_exceeded",
        retry_after_s=max(1.0, wait_ms / 1000),
    )


def _tighter(one: int, other: int) -> int:
    return min((limit for limit in (one, other) if limit), default=0)
