"""What people keep of the dashboard: filters of the sessions' list under a name."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from apps.accounts.models import EndUser
from kernel.tenant_models import TenantModel

LONGEST_NAME = 60
MOST = 20
"""Views of one member, and as many that the tenant shares."""


class SavedView(TenantModel):
    """Filters of the sessions' list under a name: its maker's own, or shared with everybody who sees sessions.

    `place` is what bounds their number: Postgres has no other constraint that counts.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", help_text="Who made it."
    )
    name = models.CharField(max_length=LONGEST_NAME)
    shared = models.BooleanField(default=False)
    place = models.PositiveSmallIntegerField(
        help_text="The lowest that was free when it was saved or shared."
    )
    filters = models.JSONField(
        default=dict, help_text="Values of the filter form by field, without the end user."
    )
    end_user = models.ForeignKey(
        EndUser,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The only one whose sessions it shows; whoever deletes that person deletes this, too.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "tenant",
                "user",
                Lower("name"),
                condition=Q(shared=False),
                name="view_name_once_per_member",
            ),
            models.UniqueConstraint(
                "tenant",
                Lower("name"),
                condition=Q(shared=True),
                name="view_name_once_among_shared",
            ),
            models.UniqueConstraint(
                fields=["tenant", "user", "place"],
                condition=Q(shared=False),
                name="view_place_once_per_member",
            ),
            models.UniqueConstraint(
                fields=["tenant", "place"], condition=Q(shared=True), name="view_place_once_among_shared"
            ),
            models.CheckConstraint(condition=Q(place__gte=1, place__lte=MOST), name="view_places_are_few"),
            models.CheckConstraint(condition=~Q(name=""), name="view_has_a_name"),
            models.CheckConstraint(
                condition=Q(end_user__isnull=False) | ~Q(filters={}), name="view_filters_something"
            ),
        ]
        indexes = [models.Index(fields=["tenant", "-created_at"], name="view_by_tenant")]

    def __str__(self) -> str:
        return self.name
