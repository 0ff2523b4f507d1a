"""Carry the scope (`kernel.tenancy`) to the database session before each query.

The role and the tenant of the session change only when the scope changed, in one round trip. A
rollback also rolls settings back, so after one the session's state counts as unknown. Errors leave
without the rows they are about (`kernel.postgres.errors`).
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property

from kernel.postgres.errors import leave_out_rows
from kernel.roles import APP_ROLE, SYSTEM_ROLE
from kernel.tenancy import Scope, current_scope

_APPLY = "SELECT set_config('role', %s, false), set_config('attune.tenant', %s, false)"
_UNKNOWN = object()


class _Wrapped(DatabaseErrorWrapper):
    """Django's own, for errors that say less."""

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc_value is not None:
            leave_out_rows(exc_value)
        super().__exit__(exc_type, exc_value, traceback)


class DatabaseWrapper(base.DatabaseWrapper):
    """One connection that never runs a query under another scope than the caller's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._applied: object = _UNKNOWN
        self.execute_wrappers.append(self._under_scope)

    @cached_property
    def wrap_database_errors(self) -> DatabaseErrorWrapper:
        """What every use of the connection is wrapped in."""
        return _Wrapped(self)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Open (or take from the pool) a connection whose scope is not known yet."""
        self._applied = _UNKNOWN
        return super().get_new_connection(conn_params)

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]  # missing in the stubs
        self._applied = _UNKNOWN

    def _savepoint_rollback(self, sid: str) -> None:
        # not through a cursor: in a failed transaction nothing else may run before this, no scope either
        with self.wrap_database_errors:
            self.connection.execute(self.ops.savepoint_rollback_sql(sid))
        self._applied = _UNKNOWN

    def _under_scope(self, execute: Callable[..., Any], *query: Any) -> Any:
        scope = current_scope()
        if scope != self._applied or self._applied is _UNKNOWN:
            self._apply(scope)
        return execute(*query)

    def _apply(self, scope: Scope | None) -> None:
        role = settings.DATABASE_ROLE if scope is None else SYSTEM_ROLE if scope.is_system else APP_ROLE
        tenant = "" if scope is None or scope.tenant_id is None else str(scope.tenant_id)
        with self.wrap_database_errors:
            self.connection.execute(_APPLY, (role, tenant))
        self._applied = scope
