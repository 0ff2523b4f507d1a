"""Who may see which rows: the scope of the running code (`kernel.tenant_models` obeys it).

The scope lives in a context variable, so it follows `await` and `sync_to_async`. `kernel.postgres`
carries it to the database session, where row-level security says the same thing a second time.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """Either one tenant's rows, or (`tenant_id` None) every tenant's, for a stated reason."""

    tenant_id: uuid.UUID | None
    reason: str = ""

    @property
    def is_system(self) -> bool:
        """Whether this scope crosses tenants."""
        return self.tenant_id is None


_scope: ContextVar[Scope | None] = ContextVar("attune_scope", default=None)


def current_scope() -> Scope | None:
    """Return the scope of the running code, or None where none was entered."""
    return _scope.get()


@contextmanager
def _entered(scope: Scope) -> Iterator[Scope]:
    token = _scope.set(scope)
    try:
        yield scope
    finally:
        _scope.reset(token)


@contextmanager
def tenant_scope(tenant_id: uuid.UUID | str) -> Iterator[Scope]:
    """Run a block that sees and writes only this tenant's rows."""
    with _entered(Scope(tenant_id if isinstance(tenant_id, uuid.UUID) else uuid.UUID(tenant_id))) as scope:
        yield scope


@contextmanager
def system_scope(reason: str) -> Iterator[Scope]:
    """Run a block that sees every tenant's rows: relay, schedule, console. `reason` is for the reader."""
    with _entered(Scope(None, reason)) as scope:
        yield scope
