"""The web's cache: Redis, which its processes share, or, while that is away, this process's own memory.

What is kept there is how often somebody asked. Without it pages and /api broke, signing in among them; alone, each
process counts for itself, as the gateway does.
"""

import logging
import time
from typing import Any

import redis
from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache

logger = logging.getLogger(__name__)

ALONE_S = 2.0
"""After Redis did not answer nobody asks it for so long."""


class SharedOrOwn(RedisCache):
    """Redis' cache where it answers, a cache in memory where it does not."""

    alone_until = 0.0
    """Of the process, by its monotonic clock: Django makes one of these for each context."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._own = LocMemCache("while Redis is away", params)

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        """Return what is kept."""
        return self._asked("get", key, default, version)

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        """Keep a value."""
        self._asked("set", key, value, timeout, version)

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Keep a value where there is none; return whether there was none."""
        return bool(self._asked("add", key, value, timeout, version))

    def incr(self, key: Any, delta: int = 1, version: int | None = None) -> int:
        """Count on; raise ValueError where nothing is kept."""
        return int(self._asked("incr", key, delta, version))

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Keep what is there for longer."""
        return bool(self._asked("touch", key, timeout, version))

    def delete(self, key: Any, version: int | None = None) -> bool:
        """Forget a value."""
        return bool(self._asked("delete", key, version))

    def has_key(self, key: Any, version: int | None = None) -> bool:
        """Return whether something is kept."""
        return bool(self._asked("has_key", key, version))

    def clear(self) -> None:
        """Forget everything, here and there."""
        self._own.clear()
        self._asked("clear")

    def _asked(self, name: str, *said: Any) -> Any:
        if time.monotonic() >= SharedOrOwn.alone_until:
            try:
                return getattr(super(), name)(*said)
            except (redis.RedisError, OSError) as error:
                SharedOrOwn.alone_until = time.monotonic() + ALONE_S
                logger.warning("the cache is away, this process counts alone: %s", type(error).__name__)
        return getattr(self._own, name)(*said)
