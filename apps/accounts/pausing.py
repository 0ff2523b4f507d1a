"""A paused tenant asks for nothing that costs compute. What it has stands, is read, and waits.

Requests and training steps under way end; what was announced to workers stays in the outbox until the tenant
is resumed.
"""

import uuid

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import LONGEST_PAUSE_REASON, Tenant
from apps.accounts.operators import operators_plain
from kernel import audit
from kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from kernel.tenancy import tenant_scope

CODE = "tenant_paused"


def pause_tenant(*, tenant_id: uuid.UUID, reason: str, actor: str) -> Tenant:
    """Refuse what a tenant asks from its next request on, and begin none of its work; audited.

    The tenant reads `reason`. Raises InvalidInput for a reason that is none, Conflict where it is paused
    already.
    """
    words = " ".join(reason.replace("\x00", "").split())
    if not 1 <= len(words) <= LONGEST_PAUSE_REASON:
        raise InvalidInput(f"The reason has 1 to {LONGEST_PAUSE_REASON} characters.", field="reason")
    with tenant_scope(tenant_id), transaction.atomic():
        tenant = _locked(tenant_id)
        if tenant.paused_at is not None:
            raise Conflict(
                f"The tenant {tenant.slug} is paused already: {_ended(tenant.pause_reason)} "
                "Resume it first to give another reason."
            )
        tenant.paused_at, tenant.pause_reason = timezone.now(), words
        tenant.save(update_fields=["paused_at", "pause_reason"])
        audit.record(
            actor=actor,
            action="tenant.pause",
            target=f"tenant:{tenant.pk}",
            tenant_id=tenant_id,
            detail={"reason": words},
        )
    return tenant


def resume_tenant(*, tenant_id: uuid.UUID, reason: str, actor: str) -> Tenant:
    """Answer a paused tenant again from its next request on; what waited goes on. Audited.

    Raises Conflict where it is not paused.
    """
    with tenant_scope(tenant_id), transaction.atomic():
        tenant = _locked(tenant_id)
        if tenant.paused_at is None:
            raise Conflict(f"The tenant {tenant.slug} is not paused. There is nothing to resume.")
        detail = {"reason": reason, "was": tenant.pause_reason, "since": tenant.paused_at.isoformat()}
        tenant.paused_at, tenant.pause_reason = None, ""
        tenant.save(update_fields=["paused_at", "pause_reason"])
        audit.record(
            actor=actor,
            action="tenant.resume",
            target=f"tenant:{tenant.pk}",
            tenant_id=tenant_id,
            detail=detail,
        )
    return tenant


def is_paused(tenant_id: uuid.UUID) -> bool:
    """Return whether a tenant in scope is paused now."""
    return Tenant.objects.filter(pk=tenant_id, paused_at__isnull=False).exists()


def refuse_while_paused(tenant_id: uuid.UUID) -> None:
    """Raise Forbidden (`tenant_paused`) with the reason while a tenant is paused.

    Works in its scope or in none.
    """
    with tenant_scope(tenant_id):
        found = Tenant.objects.filter(pk=tenant_id, paused_at__isnull=False)
        refuse(found.values_list("pause_reason", flat=True).first())


def refuse(reason: str | None) -> None:
    """Raise Forbidden (`tenant_paused`) where there is a reason:
    what the gateway's look-up says of the tenant."""
    if reason:
        raise Forbidden(
            f"This tenant is paused: {_ended(reason)} Ask {operators_plain()}.",
            code=CODE,
        )


def _ended(reason: str) -> str:
    """Return a reason as the end of a sentence, which an operator may have ended already."""
    return reason if reason.endswith((".", "!", "?", "…")) else f"{reason}."


def _locked(tenant_id: uuid.UUID) -> Tenant:
    tenant = Tenant.objects.select_for_update(no_key=True).filter(pk=tenant_id).first()
    if tenant is None:
        raise NotFound("There is no such tenant.")
    return tenant
