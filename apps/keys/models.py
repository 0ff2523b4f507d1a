"""Personal API keys. The secret is returned once and stored as a hash."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from kernel.tenant_models import TenantModel


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
    name = models.CharField(max_length=100)
    public_id = models.CharField(max_length=24, unique=True)
    secret_sha256 = models.BinaryField(max_length=32)
    scopes = ArrayField(models.CharField(max_length=10, choices=KeyScope.choices))
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="Written at most once a minute.")

    def __str__(self) -> str:
        return f"at-{self.public_id}-…"
