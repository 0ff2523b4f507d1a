"""Personal API keys. The secret is returned once and stored as a hash."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from apps.adapters.models import Policy
from kernel.tenant_models import TenantModel

LONGEST_NAME = 100


class KeyScope(models.TextChoices):
    """What a key may do."""

    CHAT = "chat"
    ROLLOUT = "rollout"
    READ = "read"
    MANAGE = "manage"
    EVALUATE = "evaluate"  # may name a version that is not live: `default@12`


class ApiKey(TenantModel):
    """A key `at-<public id>-<secret>` of one user of one tenant."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=LONGEST_NAME)
    public_id = models.CharField(max_length=24, unique=True)
    secret_sha256 = models.BinaryField(max_length=32)
    scopes = ArrayField(models.CharField(max_length=10, choices=KeyScope.choices))
    some_policies = models.BooleanField(
        default=False, help_text="Only those of its `KeyPolicy` rows; where they are gone, none."
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="Written at most once a minute.")
    successor = models.OneToOneField(
        "self",
        null=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="What it was rotated into, once: from then on its end is that of the overlap.",
    )

    class Meta:
        verbose_name = "key"
        constraints = [
            # what rows of other tables refer to that must be of the same tenant
            models.UniqueConstraint(fields=["tenant", "id"], name="key_of_its_tenant"),
            models.CheckConstraint(
                # who manages makes another key, of all policies
                condition=models.Q(some_policies=False) | ~models.Q(scopes__contains=[KeyScope.MANAGE]),
                name="key_of_some_policies_does_not_manage",
            ),
        ]

    def __str__(self) -> str:
        return f"at-{self.public_id}-…"


class KeyPolicy(TenantModel):
    """A policy that a key of some policies may name. Postgres holds both to the row's tenant."""

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="policies")
    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="+")

    class Meta:
        verbose_name_plural = "key policies"
        constraints = [models.UniqueConstraint(fields=["key", "policy"], name="key_policy_once")]

    def __str__(self) -> str:
        return f"{self.key} may name {self.policy}"


class Limit(TenantModel):
    """What one key, or (without a key) all of the tenant's together, may ask.

    A number that is absent is the platform's default; 0 is no limit. What a tenant asks of itself is a row of
    its own beside the operator's, of which the lesser holds: neither writes over the other.
    """

    key = models.OneToOneField(ApiKey, null=True, on_delete=models.CASCADE, related_name="limit")
    requests_per_minute = models.PositiveIntegerField(null=True)
    tokens_per_minute = models.PositiveIntegerField(null=True)
    concurrent = models.PositiveIntegerField(null=True, help_text="Requests at once.")
    by_tenant = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="Of all keys together: set by the tenant itself, beside what an operator set.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "by_tenant"],
                condition=models.Q(key__isnull=True),
                name="limit_once_per_tenant_and_side",
            ),
            models.CheckConstraint(
                condition=models.Q(by_tenant=False) | models.Q(key__isnull=True),
                name="limit_by_tenant_is_of_all_keys",
            ),
        ]

    def __str__(self) -> str:
        return f"limit of {self.key or 'the tenant'}"
