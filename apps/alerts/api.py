"""REST: webhook endpoints, and what was brought to them."""

import uuid
from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from apps.alerts import endpoints, services
from apps.alerts.addresses import URL_CHARACTERS
from apps.alerts.models import TOLD_OF, Attempt, Delivery, DeliveryState, Event, WebhookEndpoint
from kernel.errors import NotFound
from kernel.rest.caller import Access
from kernel.rest.reading import SomethingSaid
from kernel.rest.views import ScopedViewSet

_CHOICES = [(event.value, event.label) for event in TOLD_OF]


class WebhookSerializer(serializers.ModelSerializer[WebhookEndpoint]):
    """An address that is told of chosen events. Its secret is shown when it is made or changed, and never again."""

    events = serializers.ListField(child=serializers.ChoiceField(choices=_CHOICES))

    class Meta:
        model = WebhookEndpoint
        fields = [
            *("id", "url", "events", "enabled", "disabled_reason", "failing_since", "previous_until"),
            "created_at",
        ]
        read_only_fields = fields
        extra_kwargs = {"previous_until": {"help_text": "Until then the secret before this one signs, too."}}


class NewWebhookSerializer(serializers.Serializer[Any]):
    """An endpoint to be made."""

    url = serializers.CharField(max_length=URL_CHARACTERS, help_text="https, and public.")
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=_CHOICES), min_length=1, max_length=len(_CHOICES)
    )


class WebhookChangeSerializer(SomethingSaid):
    """What may be changed of an endpoint; what is left out stays."""

    url = serializers.CharField(max_length=URL_CHARACTERS, required=False)
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=_CHOICES),
        min_length=1,
        max_length=len(_CHOICES),
        required=False,
    )
    enabled = serializers.BooleanField(
        required=False, help_text="Off: it is told nothing, and what is on its way ends as dead."
    )


class WebhookSecretSerializer(serializers.Serializer[Any]):
    """An endpoint and the secret that signs for it from now on."""

    webhook = WebhookSerializer()
    secret = serializers.CharField(help_text="As Standard Webhooks writes it. It is not shown again.")


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    """One try and what came back."""

    class Meta:
        model = Attempt
        fields = ["number", "status", "answer", "error", "took_ms", "created_at"]


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """One alert on its way to one endpoint."""

    webhook = serializers.UUIDField(source="endpoint_id")
    event = serializers.ChoiceField(source="alert.event", choices=Event.choices)
    words = serializers.CharField(source="alert.words")
    tries = AttemptSerializer(many=True)

    class Meta:
        model = Delivery
        fields = [
            *("id", "webhook", "event", "words", "state", "reason", "attempts", "tries"),
            *("due_at", "delivered_at", "created_at"),
        ]
        read_only_fields = fields


class DeliveryFilter(django_filters.FilterSet):
    """Deliveries to one endpoint, or in one state."""

    webhook = django_filters.UUIDFilter(field_name="endpoint_id")
    state = django_filters.ChoiceFilter(choices=DeliveryState.choices)

    class Meta:
        model = Delivery
        fields = ["webhook", "state"]


class WebhooksApi(ScopedViewSet[WebhookEndpoint]):
    """Webhook endpoints of the tenant."""

    needs = {"*": Access.MANAGE}
    serializer_class = WebhookSerializer

    def rows(self) -> QuerySet[WebhookEndpoint]:
        """Return the tenant's endpoints."""
        return WebhookEndpoint.objects.all()

    @extend_schema(request=NewWebhookSerializer, responses={201: WebhookSecretSerializer})
    def create(self, request: Any) -> Response:
        """Make an endpoint; its secret is in this answer and nowhere after."""
        del request
        made, secret = endpoints.create_endpoint(
            tenant_id=self.caller.tenant_id, actor=self.caller.actor, **self.body(NewWebhookSerializer)
        )
        return Response(WebhookSecretSerializer({"webhook": made, "secret": secret}).data, status=201)

    @extend_schema(request=WebhookChangeSerializer, responses=WebhookSerializer)
    def partial_update(self, request: Any, pk: Any = None) -> Response:
        """Change its address or its events, or switch it off or on."""
        del request, pk
        row = endpoints.change_endpoint(
            endpoint_id=self.get_object().pk, actor=self.caller.actor, **self.body(WebhookChangeSerializer)
        )
        return Response(WebhookSerializer(row).data)

    @extend_schema(request=None, responses={204: None})
    def destroy(self, request: Any, pk: Any = None) -> Response:
        """Delete it, with all that was brought to it. It cannot be undone."""
        del request, pk
        endpoints.delete_endpoint(endpoint_id=self.get_object().pk, actor=self.caller.actor)
        return Response(status=204)

    @extend_schema(request=None, responses={201: WebhookSecretSerializer})
    @action(detail=True, methods=["post"])
    def rotate(self, request: Any, pk: Any = None) -> Response:
        """Give it another secret; for a day both sign."""
        del request, pk
        row, secret = endpoints.rotate_secret(endpoint_id=self.get_object().pk, actor=self.caller.actor)
        return Response(WebhookSecretSerializer({"webhook": row, "secret": secret}).data, status=201)

    @extend_schema(request=None, responses={201: DeliverySerializer})
    @action(detail=True, methods=["post"])
    def test(self, request: Any, pk: Any = None) -> Response:
        """Send it an `endpoint.test`, one at a time; what comes of it is on the delivery."""
        del request, pk
        delivery = endpoints.send_test(endpoint_id=self.get_object().pk, actor=self.caller.actor)
        return Response(DeliverySerializer(delivery).data, status=201)

    def again(self, made: uuid.UUID) -> Response:
        """What was brought as a test, which alone is answered twice: the others show a secret."""
        delivery = Delivery.objects.select_related("alert").filter(pk=made).first()
        if delivery is None:
            raise NotFound("There is no such delivery.")
        return Response(DeliverySerializer(delivery).data)


class DeliveriesApi(ScopedViewSet[Delivery]):
    """What was, or is to be, brought to the tenant's webhook endpoints."""

    needs = {"*": Access.MANAGE}
    serializer_class = DeliverySerializer
    filterset_class = DeliveryFilter

    def rows(self) -> QuerySet[Delivery]:
        """Return deliveries to endpoints; mails are not among them."""
        rows = Delivery.objects.exclude(endpoint=None).select_related("alert")
        return rows.prefetch_related("tries")

    @extend_schema(request=None, responses=DeliverySerializer)
    @action(detail=True, methods=["post"])
    def replay(self, request: Any, pk: Any = None) -> Response:
        """Try a dead one again from the start."""
        del request, pk
        row = services.replay(delivery_id=self.get_object().pk, actor=self.caller.actor)
        return Response(DeliverySerializer(row).data)
