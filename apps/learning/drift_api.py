"""REST: how far policies have drifted, and what was past its bound."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.learning.drift.bounds import BOUNDS
from apps.learning.drift.models import Action, Crossing, DriftReading, Gauge
from apps.learning.drift.selectors import is_past
from kernel.rest.caller import Access
from kernel.rest.filters import FlagFilter
from kernel.rest.views import ScopedViewSet


class MeasureSerializer(serializers.Serializer[Any]):
    """One measure of a gauge, and the bound that held then."""

    measure = serializers.CharField()
    value = serializers.FloatField()
    unit = serializers.CharField(allow_blank=True)
    side = serializers.ChoiceField(choices=["over", "under"], help_text="Which side of the limit is too far.")
    limit = serializers.FloatField(allow_null=True, help_text="null: the bound was off.")
    action = serializers.ChoiceField(
        choices=Action.values, allow_null=True, help_text="What a crossing would have done."
    )
    past = serializers.BooleanField(help_text="Whether the value is past the limit.")


class DriftReadingSerializer(serializers.ModelSerializer[DriftReading]):
    """One gauge of one policy, at a run's end or over a week."""

    policy = serializers.UUIDField(source="policy_id")
    run = serializers.UUIDField(source="run_id", allow_null=True, help_text="null: over a week.")
    version = serializers.IntegerField(
        source="version.number",
        default=None,
        allow_null=True,
        help_text="That the run made; without a run, the live one.",
    )
    measures = serializers.SerializerMethodField()

    class Meta:
        model = DriftReading
        fields = ["id", "policy", "gauge", "run", "version", "since", "until", "measures", "created_at"]
        read_only_fields = fields

    @extend_schema_field(MeasureSerializer(many=True))
    def get_measures(self, reading: DriftReading) -> list[dict[str, Any]]:
        """Return what was measured, in the order of the bounds."""
        found = []
        for bound in BOUNDS:
            if bound.measure in reading.values:
                value = reading.values[bound.measure]
                limit, action = reading.bounds.get(bound.measure) or (None, None)
                found.append(
                    {
                        "measure": bound.measure,
                        "value": value,
                        "unit": bound.unit,
                        "side": bound.side,
                        "limit": limit,
                        "action": action,
                        "past": is_past(bound, value, limit),
                    }
                )
        return found


class ReadingFilter(django_filters.FilterSet):
    """Readings of one policy, one gauge or one run."""

    policy = django_filters.UUIDFilter(field_name="policy_id")
    gauge = django_filters.ChoiceFilter(choices=Gauge.choices)
    run = django_filters.UUIDFilter(field_name="run_id")

    class Meta:
        model = DriftReading
        fields = ["policy", "gauge", "run"]


class ReadingsApi(ScopedViewSet[DriftReading]):
    """Readings of the three gauges."""

    needs = {"*": Access.VIEW}
    of_policy = "policy_id"
    serializer_class = DriftReadingSerializer
    filterset_class = ReadingFilter

    def rows(self) -> QuerySet[DriftReading]:
        """Return the readings of the tenant's policies."""
        return DriftReading.objects.select_related("version").defer("detail")


class CrossingSerializer(serializers.ModelSerializer[Crossing]):
    """A measure that went past its bound, and what was done."""

    policy = serializers.UUIDField(source="policy_id")
    reading = serializers.UUIDField(source="reading_id")
    version = serializers.IntegerField(source="version.number", default=None, allow_null=True)

    class Meta:
        model = Crossing
        fields = [
            *("id", "policy", "reading", "measure", "value", "bound", "action", "words", "done", "version"),
            *("created_at", "acted_at", "cleared_at", "cleared_by"),
        ]
        read_only_fields = fields


class CrossingFilter(django_filters.FilterSet):
    """Crossings of one policy, or those that are still open."""

    policy = django_filters.UUIDFilter(field_name="policy_id")
    open = FlagFilter(field_name="cleared_at", lookup_expr="isnull")

    class Meta:
        model = Crossing
        fields = ["policy", "open"]


class CrossingsApi(ScopedViewSet[Crossing]):
    """Bounds that were crossed."""

    needs = {"*": Access.VIEW}
    of_policy = "policy_id"
    serializer_class = CrossingSerializer
    filterset_class = CrossingFilter

    def rows(self) -> QuerySet[Crossing]:
        """Return the crossings of the tenant's policies."""
        return Crossing.objects.select_related("version")
