"""Alerts, where they went, and what came back."""

from django.contrib import admin
from django.utils.safestring import SafeString

from apps.adapters.models import AdapterVersion, Policy
from apps.alerts import addresses
from apps.alerts.endpoints import switch_off, switch_on
from apps.alerts.models import Alert, Delivery, DeliveryState, Event, WebhookEndpoint
from apps.alerts.services import replay
from apps.console import show
from apps.console.admin.base import Act, ConsoleAdmin
from apps.learning.models import TrainingRun


@admin.register(Alert)
class AlertAdmin(ConsoleAdmin):
    """What tenants were told."""

    fills = (
        "A row is written when a tenant is told of something: another version that answers, a run that "
        "failed, a bound that was crossed."
    )
    list_display = ("created_at", "tenant", "severity_chip", "event", "words", "done")
    list_select_related = ("tenant",)
    list_filter = ("severity", "event", "tenant")
    search_fields = ("=id", "=policy_id", "=run_id", "words", "tenant__slug")
    ordering = ("-id",)
    heavy = ("data",)
    fields = (
        "created_at",
        "tenant",
        "severity_chip",
        "event",
        "words",
        "done",
        "about",
        "carried",
        "dedupe_key",
        "id",
    )
    panels_template = "console/deliveries.html"

    def panels(self, alert: Alert) -> dict[str, object]:
        """Show where it went."""
        return {"deliveries": alert.deliveries.select_related("endpoint").order_by("created_at")[:50]}

    @admin.display(description="severity")
    def severity_chip(self, alert: Alert) -> SafeString:
        """Return how much it matters."""
        return show.chip(alert.severity)

    @admin.display(description="about")
    def about(self, alert: Alert) -> SafeString:
        """Link to the policy, run and version it speaks of, where they are still there."""
        named = (
            (Policy, alert.policy_id),
            (TrainingRun, alert.run_id),
            (AdapterVersion, alert.version_id),
        )
        rows = [model.objects.filter(pk=pk).first() for model, pk in named if pk is not None]
        return show.joined(show.link(row) for row in rows if row is not None)

    @admin.display(description="data")
    def carried(self, alert: Alert) -> SafeString:
        """Return what webhooks carry beside the words."""
        return show.as_json(alert.data)


def _off(endpoint: WebhookEndpoint, who: str, why: str) -> str:
    switch_off(endpoint_id=endpoint.pk, actor=who, reason=why)
    return "it is told nothing more; what was on its way ends as dead."


def _on(endpoint: WebhookEndpoint, who: str, why: str) -> str:
    del why  # kept in the audit row
    switch_on(endpoint_id=endpoint.pk, actor=who)
    return "it is told of its events again; dead deliveries can be replayed."


@admin.register(WebhookEndpoint)
class EndpointAdmin(ConsoleAdmin):
    """Addresses that tenants want to be told at. Secrets are never shown here."""

    fills = "A tenant adds one under Settings, Alerts, or by `manage.py webhooks add`."
    list_display = ("where", "tenant", "enabled", "chosen", "failing_since", "why_off", "created_at")
    list_select_related = ("tenant",)
    list_filter = ("enabled", "tenant")
    search_fields = ("=id", "tenant__slug")
    ordering = ("-id",)
    heavy = ("secret", "previous_secret")
    fields = (
        "where",
        "tenant",
        "enabled",
        "why_off",
        "chosen",
        "failing_since",
        "previous_until",
        "created_at",
        "id",
    )
    acts = (
        Act(
            name="switch-off",
            label="Switch the endpoint off",
            question=lambda row: (
                f"{addresses.shown(row.url)} of {row.tenant} is told nothing more. What is on its way ends as dead."
            ),
            do=_off,
            offered=lambda row: row.enabled,
        ),
        Act(
            name="switch-on",
            label="Switch the endpoint on",
            question=lambda row: f"{addresses.shown(row.url)} of {row.tenant} is told of its events again.",
            do=_on,
            offered=lambda row: not row.enabled,
        ),
    )
    panels_template = "console/deliveries.html"

    def panels(self, endpoint: WebhookEndpoint) -> dict[str, object]:
        """Show what it was told last."""
        return {
            "deliveries": endpoint.deliveries.select_related("alert", "endpoint").order_by("-created_at")[:50]
        }

    @admin.display(description="address")
    def where(self, endpoint: WebhookEndpoint) -> str:
        """Return scheme and host: the rest may be a secret of the tenant's."""
        return addresses.shown(endpoint.url)

    @admin.display(description="events")
    def chosen(self, endpoint: WebhookEndpoint) -> str:
        """Return the events it is told of."""
        return ", ".join(Event(event).label if event in Event else event for event in endpoint.events)

    @admin.display(description="why it is off")
    def why_off(self, endpoint: WebhookEndpoint) -> str:
        """Return what was said when it was switched off."""
        return endpoint.disabled_reason or "-"


def _replay(row: Delivery, who: str, why: str) -> str:
    del why  # kept in the audit row
    replay(delivery_id=row.pk, actor=who)
    return "it is tried again now, from the start."


@admin.register(Delivery)
class DeliveryAdmin(ConsoleAdmin):
    """Alerts on their way; dead ones can be replayed."""

    fills = (
        "An alert goes to each address that a tenant chose under Settings, Alerts; until there is an alert "
        "and an address, nothing is on its way."
    )
    list_display = ("created_at", "tenant", "event", "goes_to", "state_chip", "attempts", "due_at", "reason")
    list_select_related = ("tenant", "alert", "endpoint")
    list_filter = ("state", "tenant")
    search_fields = ("=id", "=alert__id", "tenant__slug", "recipient")
    ordering = ("-id",)
    fields = (
        "alert",
        "tenant",
        "goes_to",
        "state_chip",
        "attempts",
        "reason",
        "created_at",
        "due_at",
        "delivered_at",
        "id",
    )
    acts = (
        Act(
            name="replay",
            label="Replay the delivery",
            question=lambda row: (
                f"{row.alert.get_event_display()}: this is sent to {row.recipient or row.endpoint} again, with all its "
                "tries, under the same id. A receiver who had it already can tell."
            ),
            do=_replay,
            offered=lambda row: row.state == DeliveryState.DEAD,
        ),
    )
    panels_template = "console/delivery.html"

    def panels(self, delivery: Delivery) -> dict[str, object]:
        """Show every attempt."""
        return {"tries": delivery.tries.order_by("-number")[:50]}

    @admin.display(description="event")
    def event(self, delivery: Delivery) -> str:
        """Return what it tells of."""
        return delivery.alert.get_event_display()

    @admin.display(description="to")
    def goes_to(self, delivery: Delivery) -> str:
        """Return the endpoint's host or the person's address."""
        return delivery.recipient or str(delivery.endpoint)

    @admin.display(description="state")
    def state_chip(self, delivery: Delivery) -> SafeString:
        """Return its state."""
        return show.chip(delivery.state)
