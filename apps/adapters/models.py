"""Policies, the versions of their adapters, and which one is live."""

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models

from kernel.tenant_models import TenantModel

POLICY_NAME = r"^[a-z][a-z0-9._-]*\Z"
"""What a policy may be called, in at most 60 characters."""


class Policy(TenantModel):
    """What a tenant calls a model: one base, one lineage of adapters, one live version.

    `live` None is version 0, the bare base.
    """

    name = models.CharField(
        max_length=60,
        validators=[RegexValidator(POLICY_NAME, "Lower-case letters, digits, dots, hyphens.")],
    )
    base_model = models.CharField(max_length=200)
    live = models.ForeignKey(
        "AdapterVersion", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    temperature = models.FloatField(
        default=0.7,
        validators=[MinValueValidator(0.0), MaxValueValidator(2.0)],
        help_text="Used where the client names none.",
    )
    training_enabled = models.BooleanField(default=True)
    config = models.JSONField(
        default=dict,
        blank=True,
        help_text="Overrides of the training configuration (method, lr, batch size, staleness bound …).",
    )
    config_number = models.PositiveIntegerField(
        default=1, editable=False, help_text="The row of `PolicyConfig` that `config` is a copy of."
    )

    class Meta:
        verbose_name_plural = "policies"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="policy_name_once_per_tenant"),
            # what rows of other tables refer to that must be of the same tenant
            models.UniqueConstraint(fields=["tenant", "id"], name="policy_of_its_tenant"),
            models.CheckConstraint(
                condition=models.Q(temperature__gte=0.0, temperature__lte=2.0),
                name="policy_temperature_bounds",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PolicyConfig(TenantModel):
    """One configuration that a policy learned by.

    Append-only: a change is a new row, 1 is what it was made with.

    Postgres sees to it: a policy always names the row that its `config` is equal to, whatever changes that is
    numbered by a trigger, and no row is ever changed, or deleted before its policy.
    """

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="configs")
    number = models.PositiveIntegerField(help_text="From 1, without gaps.")
    overrides = models.JSONField(default=dict, blank=True, help_text="What differs from the platform's.")
    actor = models.CharField(
        max_length=200, help_text="Who wrote it; `system:database` where a statement named nobody."
    )

    class Meta:
        verbose_name = "configuration"
        constraints = [
            models.UniqueConstraint(fields=["policy", "number"], name="config_number_once_per_policy"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="config_numbers_start_at_1"),
        ]

    def __str__(self) -> str:
        return f"configuration {self.number}"


class VersionState(models.TextChoices):
    """The life of a version. Only `ready` ones may become live."""

    CREATED = "created"  # files whole, row committed with the samples it consumed
    READY = "ready"  # preflighted, loaded and probed on every engine of its placement, gate passed
    REFUSED = "refused"  # preflight, load, probe or gate said no: `reason` says which
    RETIRED = "retired"


class AdapterVersion(TenantModel):
    """One immutable adapter: its files, their hash, where it came from.

    A row exists only when the files are whole on storage and match `sha256`.
    """

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    parent = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="children")
    depth = models.PositiveIntegerField(help_text="Steps along the lineage from the bare base.")
    served_name = models.CharField(max_length=80, unique=True)
    sha256 = models.CharField(max_length=64)
    path = models.CharField(max_length=500, help_text="Relative to the adapter store.")
    rank = models.PositiveIntegerField()
    alpha = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=VersionState.choices, default=VersionState.CREATED)
    reason = models.CharField(max_length=500, blank=True)
    run_id = models.UUIDField(unique=True, help_text="The training run that made it.")
    metrics = models.JSONField(default=dict)
    ready_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "version"
        constraints = [
            models.UniqueConstraint(fields=["policy", "number"], name="version_number_once_per_policy"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="version_numbers_start_at_1"),
            models.CheckConstraint(
                condition=models.Q(state__in=VersionState.values), name="version_state_known"
            ),
        ]
        indexes = [models.Index(fields=["tenant", "-created_at"], name="version_by_tenant")]

    def __str__(self) -> str:
        return self.served_name


class PointerMove(TenantModel):
    """One move of a policy's live pointer: publishing, rollback, promotion."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="moves")
    from_version = models.ForeignKey(AdapterVersion, null=True, on_delete=models.PROTECT, related_name="+")
    to_version = models.ForeignKey(AdapterVersion, null=True, on_delete=models.PROTECT, related_name="+")
    actor = models.CharField(max_length=200)
    reason = models.CharField(max_length=500)

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "-created_at"], name="move_by_tenant"),
            models.Index(fields=["policy", "-created_at"], name="move_by_policy"),
        ]

    def __str__(self) -> str:
        return f"{self.from_version_id} → {self.to_version_id}"


class GateResult(TenantModel):
    """What a check said of a version before it could go live."""

    version = models.ForeignKey(AdapterVersion, on_delete=models.CASCADE, related_name="gate_results")
    check_name = models.CharField(max_length=60)
    passed = models.BooleanField()
    detail = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "check_name"], name="gate_result_once_per_check")
        ]

    def __str__(self) -> str:
        return f"{self.check_name}: {'passed' if self.passed else 'failed'}"
