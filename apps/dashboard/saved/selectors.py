"""Whose saved views somebody sees."""

import uuid

from django.db.models import Q, QuerySet
from django.db.models.functions import Lower

from apps.dashboard.models import SavedView


def views_for(user_id: uuid.UUID) -> QuerySet[SavedView]:
    """Return the person's own views and those that are shared in the tenant in
    scope, with their end users."""
    rows = SavedView.objects.select_related("end_user")
    return rows.filter(Q(shared=True) | Q(user_id=user_id))


def in_order(views: QuerySet[SavedView]) -> QuerySet[SavedView]:
    """Return shared ones first, then by name."""
    return views.order_by("-shared", Lower("name"), "id")
