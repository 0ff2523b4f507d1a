"""Tenants: who they are, what they may ask, and whether they are answered."""

import uuid
from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.accounts import pausing
from apps.accounts.models import Membership, Tenant
from apps.adapters.models import Policy
from apps.console import show
from apps.console.admin.base import Act, ConsoleAdmin
from apps.console.forms import LimitsForm, PauseForm
from apps.conversations.models import Session
from apps.keys.models import ApiKey
from apps.keys.services import set_limit
from apps.keys.tenant_limit import granted, holding, in_words, sides
from apps.learning.models import TrainingRun


def _per_tenant(rows: QuerySet[Any]) -> Subquery:
    counted = rows.filter(tenant=OuterRef("pk")).order_by().values("tenant").annotate(n=Count("pk"))
    return Subquery(counted.values("n"))


def _pause(tenant: Tenant, who: str, why: str) -> str:
    pausing.pause_tenant(tenant_id=tenant.pk, reason=why, actor=who)
    return f"{tenant} is refused from its next request on, and nothing of it begins."


def _resume(tenant: Tenant, who: str, why: str) -> str:
    pausing.resume_tenant(tenant_id=tenant.pk, reason=why, actor=who)
    return f"{tenant} is answered again, and what waited goes on."


def _set_limits(
    tenant: Tenant,
    who: str,
    why: str,
    *,
    requests_per_minute: int | None,
    tokens_per_minute: int | None,
    concurrent: int | None,
) -> str:
    del why  # kept in the audit row
    set_limit(
        tenant_id=tenant.pk,
        key_id=None,
        actor=who,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        concurrent=concurrent,
    )
    return f"all keys together may ask {in_words(granted(tenant.pk))}."


def _set_now(tenant: Tenant) -> dict[str, int | None]:
    """Return what an operator set: who changes one number leaves the others."""
    return {one.name: one.operator for one in sides(tenant.pk)}


def _limits_now(tenant: Tenant) -> str:
    most, now = granted(tenant.pk), holding(tenant.pk)
    said = f"All keys of {tenant} together may ask {in_words(most)}."
    return said if now == most else f"{said} It asks less of itself: {in_words(now)}."


@admin.register(Tenant)
class TenantAdmin(ConsoleAdmin):
    """Customers."""

    fills = (
        "Who signs up makes one, unless they were invited; `manage.py create_tenant` makes one for somebody."
    )
    list_display = (
        *("slug", "name", "state", "training_enabled", "members", "policies", "last_session", "created_at"),
    )
    list_filter = (("paused_at", admin.EmptyFieldListFilter), "training_enabled")
    search_fields = ("slug", "name")
    ordering = ("slug",)
    fields = (
        *(
            "slug",
            "name",
            "state",
            "paused_at",
            "pause_reason",
            "training_enabled",
            "created_at",
            "id",
            "goto",
        ),
    )
    acts = (
        Act(
            name="pause",
            label="Pause the tenant",
            question=lambda tenant: (
                f"Every request of {tenant} to /v1 is refused from now on, and its steps, judgements, rewards and "
                "shadow replies do not begin until somebody resumes it. Requests and steps under way end. Nothing is "
                "deleted: its people read everything, and read there and in each refusal why it is paused, in the "
                "words below."
            ),
            do=_pause,
            offered=lambda tenant: not tenant.is_paused,
            form=PauseForm,
        ),
        Act(
            name="resume",
            label="Resume the tenant",
            question=lambda tenant: (
                f"{tenant} is paused: {tenant.pause_reason}. It is answered again from its next request on, and what "
                "waited goes on."
            ),
            do=_resume,
            offered=lambda tenant: tenant.is_paused,
        ),
        Act(
            name="limits",
            label="Set the limits",
            question=lambda tenant: (
                f"{_limits_now(tenant)} From its next request on they may ask what is set below; the tenant itself "
                "sets less, never more."
            ),
            do=_set_limits,
            now=_set_now,
            offered=lambda tenant: True,
            form=LimitsForm,
        ),
    )

    panels_template = "console/tenant.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add the counts and the newest session, one subquery each."""
        begun = Session.objects.filter(tenant=OuterRef("pk")).order_by("-created_at").values("created_at")
        rows: QuerySet[Any] = (
            super()
            .get_queryset(request)
            .annotate(
                n_members=_per_tenant(Membership.objects.all()),
                n_policies=_per_tenant(Policy.objects.all()),
                last_session_at=Subquery(begun[:1]),
            )
        )
        return rows

    def tenant_of(self, row: Tenant) -> uuid.UUID:
        """Return the tenant itself."""
        return row.pk

    def panels(self, tenant: Tenant) -> dict[str, object]:
        """Show what all its keys together may ask, and who says so."""
        return {"limits": sides(tenant.pk)}

    @admin.display
    def state(self, tenant: Tenant) -> SafeString:
        """Say whether it is answered."""
        return show.chip("paused" if tenant.is_paused else "ready")

    @admin.display(ordering="n_members")
    def members(self, tenant: Any) -> int:
        """Count."""
        return tenant.n_members or 0

    @admin.display(ordering="n_policies")
    def policies(self, tenant: Any) -> int:
        """Count."""
        return tenant.n_policies or 0

    @admin.display(description="last session", ordering="last_session_at")
    def last_session(self, tenant: Any) -> Any:
        """Return when its newest session began: how many there are is not counted for a list."""
        return tenant.last_session_at

    @admin.display(description="see also")
    def goto(self, tenant: Tenant) -> SafeString:
        """Link to what the tenant has."""
        wanted = {"tenant__id__exact": tenant.pk}
        return show.joined(
            show.listing(model, name, **wanted)
            for model, name in (
                (Policy, "policies"),
                (Session, "sessions"),
                (TrainingRun, "runs"),
                (ApiKey, "keys"),
                (Membership, "members"),
            )
        )
