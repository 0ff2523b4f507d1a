"""What the dashboard keeps: filters of the sessions' list under a name, and what turns sum up to."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower

from apps.accounts.models import EndUser
from kernel.tenant_models import TenantModel

LONGEST_NAME = 60
MOST = 20
"""Views of one member, and as many that the tenant shares."""


class SavedView(TenantModel):
    """Filters of the sessions' list under a name:
    its maker's own, or shared with everybody who sees sessions.

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


class TurnRollup(TenantModel):
    """What the turns that began in one stretch of time sum up to (`apps.dashboard.rollups`),
    all of them or those of one policy.

    A stretch is kept where there is the row of all its turns; a policy that has none beside it has no turn
    there. Only a copy of what the turns say. It is there as long as that holds: Postgres deletes it in the
    transaction that changes, adds or deletes a turn or a reward of that stretch.
    """

    begins_at = models.DateTimeField()
    minutes = models.PositiveSmallIntegerField(help_text="How long the stretch is.")
    # no foreign key: whoever keeps sums waits for nobody who holds a policy.
    # A policy's turns take its sums with them.
    of_policy = models.UUIDField(
        null=True, help_text="Whose turns these are; None: all, of any policy.", default=None
    )
    requests = models.PositiveBigIntegerField(help_text="Live turns and those of rollouts.")
    failed = models.PositiveBigIntegerField(help_text="Of the requests.")
    prompt_tokens = models.BigIntegerField()
    reply_tokens = models.BigIntegerField()
    first_token_ms = models.JSONField(
        help_text="The first bucket of the histogram, then how many durations fell into each from there on."
    )
    latency_ms = models.JSONField(help_text="As of the first token.")
    reward = models.FloatField(help_text="The sum of the rewards of samples, of turns of any kind.")
    rewarded = models.PositiveBigIntegerField(help_text="Samples that have one.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "begins_at", "minutes", "of_policy"],
                nulls_distinct=False,
                name="rollup_once_per_stretch",
            ),
            models.CheckConstraint(condition=Q(minutes__in=(30, 180, 720)), name="rollup_level_known"),
            models.CheckConstraint(condition=Q(failed__lte=F("requests")), name="rollup_failed_of_requests"),
        ]
        indexes = [
            models.Index(fields=["begins_at"], name="rollup_by_age"),
            models.Index(
                fields=["tenant", "minutes", "begins_at"],
                condition=Q(of_policy=None),
                name="rollup_of_all_turns",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.minutes} minutes from {self.begins_at}"
