"""Engines, what should be loaded on them, and what is."""

from django.db import models

from kernel.ids import uuid7
from kernel.tenant_models import TenantModel


class EngineState(models.TextChoices):
    """Whether an engine may be sent requests."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    LOST = "lost"
    RECYCLING = "recycling"
    """Stuck: gets no more requests and must be restarted (`ENGINE_RESTART_COMMAND`, or an operator)."""


class EngineOrder(models.TextChoices):
    """What an operator said of an engine; without an order the settings decide."""

    SERVE = "serve"
    DRAIN = "drain"


class Engine(models.Model):
    """One SGLang server. Holds nothing that cannot be rebuilt from rows and the adapter store."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    url = models.URLField(unique=True)
    state = models.CharField(max_length=10, choices=EngineState.choices, default=EngineState.STARTING)
    boot_id = models.CharField(max_length=100, blank=True, help_text="Changes when the server restarts.")
    model_path = models.CharField(max_length=500, blank=True)
    max_loaded_loras = models.PositiveIntegerField(default=0)
    seen_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=500, blank=True)
    ordered = models.CharField(
        max_length=10,
        blank=True,
        choices=EngineOrder.choices,
        help_text="What an operator said; empty: ENGINE_URLS decides.",
    )
    recycle_at = models.DateTimeField(null=True, help_text="Since when it must be restarted.")
    restart_asked_at = models.DateTimeField(null=True, help_text="When its restart was last asked for.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=EngineState.values), name="engine_state_known"
            ),
            models.CheckConstraint(
                condition=models.Q(ordered__in=["", *EngineOrder.values]), name="engine_order_known"
            ),
        ]

    def __str__(self) -> str:
        return self.url


class DesiredAdapter(TenantModel):
    """An adapter that engines should have loaded, under an immutable name:
    all of them, where all have room."""

    served_name = models.CharField(max_length=80, unique=True)
    path = models.CharField(max_length=500)
    sha256 = models.CharField(max_length=64)
    rank = models.PositiveIntegerField()
    probe = models.JSONField(
        help_text="[{ids, logprobs, base_logprobs}…]: what the trainer measured; nats, one fewer than ids."
    )
    wanted = models.BooleanField(default=True, help_text="Off: unload when no request uses it any more.")
    unwanted_at = models.DateTimeField(null=True, help_text="Since when no new request asks for it.")

    class Meta:
        verbose_name = "wanted adapter"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(wanted=True, unwanted_at__isnull=True)
                | models.Q(wanted=False, unwanted_at__isnull=False),
                name="adapter_unwanted_since_when",
            )
        ]

    def __str__(self) -> str:
        return self.served_name


class LoadState(models.TextChoices):
    """How far an adapter got on one engine."""

    LOADING = "loading"
    PROBED = "probed"
    FAILED = "failed"
    UNLOADED = "unloaded"


class LoadedAdapter(TenantModel):
    """What one engine answered about one desired adapter."""

    engine = models.ForeignKey(Engine, on_delete=models.CASCADE, related_name="loaded")
    adapter = models.ForeignKey(DesiredAdapter, on_delete=models.CASCADE, related_name="loads")
    state = models.CharField(max_length=10, choices=LoadState.choices, default=LoadState.LOADING)
    boot_id = models.CharField(max_length=100, blank=True)
    probed_at = models.DateTimeField(null=True)
    probe = models.JSONField(
        default=dict, help_text="Measured: logit change, |Δlogprob| against the trainer's."
    )
    reason = models.CharField(max_length=500, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["engine", "adapter"], name="load_once_per_engine"),
            models.CheckConstraint(condition=models.Q(state__in=LoadState.values), name="load_state_known"),
        ]

    def __str__(self) -> str:
        return f"{self.adapter_id} on {self.engine_id}: {self.state}"
