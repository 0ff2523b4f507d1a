"""Base classes of rows that belong to a tenant."""

from typing import Any, ClassVar, Self, TypeVar

from django.db import models

from kernel.errors import TenantScopeRequired
from kernel.ids import uuid7
from kernel.tenancy import current_scope

M = TypeVar("M", bound=models.Model)


class TenantManager(models.Manager[M]):
    """Rows of the tenant in scope only; raises `TenantScopeRequired` where there is no scope."""

    def get_queryset(self) -> models.QuerySet[M]:
        """Return the rows the scope allows."""
        scope = current_scope()
        if scope is None:
            raise TenantScopeRequired(
                f"{self.model._meta.label}: enter tenant_scope(...) or system_scope(...) first"  # noqa: SLF001
            )
        rows = super().get_queryset()
        return rows if scope.is_system else rows.filter(tenant_id=scope.tenant_id)


class TenantModel(models.Model):
    """A row that belongs to one tenant. Its first migration protects the table (`kernel.rls`)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey("accounts.Tenant", on_delete=models.CASCADE, related_name="+", editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save; a new row without a tenant takes the one in scope."""
        scope = current_scope()
        if self._state.adding and getattr(self, "tenant_id", None) is None and scope and scope.tenant_id:
            self.tenant_id = scope.tenant_id
        super().save(*args, **kwargs)
