"""Read what the pages show, in the tenant's scope."""

from dataclasses import dataclass

from django.db.models import Count, QuerySet

from apps.accounts.models import Membership, Role
from apps.accounts.selectors import may_see_all_sessions
from apps.adapters.models import AdapterVersion, Policy
from apps.conversations.models import Session
from kernel.tenancy import tenant_scope

SHOWN = 10


@dataclass(frozen=True, slots=True)
class Overview:
    """A tenant's first page. `sessions` None: this person sees none."""

    policies: list[Policy]
    versions: list[AdapterVersion]
    sessions: list[Session] | None
    everybodys: bool


def overview_of(membership: Membership) -> Overview:
    """Return the tenant's policies and last versions, and the sessions that this member may see.

    Owners and admins see all sessions, members their own, viewers none. Four queries at most.
    """
    everybodys = may_see_all_sessions(membership.role)
    with tenant_scope(membership.tenant_id):
        policies = (
            Policy.objects.select_related("live").annotate(n_versions=Count("versions")).order_by("name")
        )
        versions = (
            AdapterVersion.objects.select_related("policy")
            .annotate(n_samples=Count("made_by_run__samples"))
            .defer("metrics")
            .order_by("-created_at", "-id")[:SHOWN]
        )
        sessions = (
            None if membership.role == Role.VIEWER else list(_sessions(membership, everybodys=everybodys))
        )
        return Overview(list(policies), list(versions), sessions, everybodys)


def _sessions(membership: Membership, *, everybodys: bool) -> QuerySet[Session]:
    rows = Session.objects.all() if everybodys else Session.objects.filter(user_id=membership.user_id)
    return (
        rows.select_related("user", "policy")
        .annotate(n_turns=Count("turns"))
        .order_by("-created_at", "-id")[:SHOWN]
    )
