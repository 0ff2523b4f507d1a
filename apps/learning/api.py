"""REST: samples, and the runs that learn from them."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from apps.adapters.selectors import policy_of
from apps.judging.reasons import explained
from apps.learning import runs
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from apps.learning.selectors import with_sample_counts
from kernel.rest.caller import Access
from kernel.rest.views import ScopedViewSet


class SampleSerializer(serializers.ModelSerializer[Sample]):
    """What one turn is worth to its policy, or why nothing."""

    turn = serializers.UUIDField(source="turn_id")
    policy = serializers.UUIDField(source="policy_id")
    run = serializers.UUIDField(source="run_id", allow_null=True)
    version = serializers.IntegerField(source="version.number", default=0)
    means = serializers.SerializerMethodField(
        help_text="What the reason's code means, in a sentence, or nothing."
    )

    class Meta:
        model = Sample
        fields = [
            *("id", "turn", "policy", "source", "version", "state", "reason", "means", "reward"),
            *("staleness", "run", "outcome", "created_at", "consumed_at"),
        ]
        read_only_fields = fields

    def get_means(self, sample: Sample) -> str:
        """Return the reason in words."""
        return explained(sample.reason)


class SampleFilter(django_filters.FilterSet):
    """Samples of one policy or one run, or in one state."""

    policy = django_filters.UUIDFilter(field_name="policy_id")
    run = django_filters.UUIDFilter(field_name="run_id")
    turn = django_filters.UUIDFilter(field_name="turn_id")
    state = django_filters.ChoiceFilter(choices=SampleState.choices)

    class Meta:
        model = Sample
        fields = ["policy", "run", "turn", "state"]


class SamplesApi(ScopedViewSet[Sample]):
    """Samples of the turns that the caller may read."""

    needs = {"*": Access.TALK}
    of_policy = "policy_id"
    serializer_class = SampleSerializer
    filterset_class = SampleFilter

    def rows(self) -> QuerySet[Sample]:
        """Return the samples that the caller may read."""
        rows = Sample.objects.select_related("version")
        return rows if self.caller.sees_everybody else rows.filter(turn__session__user_id=self.caller.user_id)


class RunSerializer(serializers.ModelSerializer[TrainingRun]):
    """One step of one policy."""

    policy = serializers.UUIDField(source="policy_id")
    parent_version = serializers.IntegerField(
        source="parent.number", default=0, help_text="The version that it is a step from; 0 is the bare base."
    )
    version = serializers.IntegerField(
        source="version.number", default=None, allow_null=True, help_text="The version that it made, if any."
    )
    samples = serializers.IntegerField(source="n_samples", default=0)

    class Meta:
        model = TrainingRun
        fields = [
            *(
                "id",
                "policy",
                "state",
                "trigger",
                "reason",
                "parent_version",
                "version",
                "samples",
                "attempts",
            ),
            *("config", "config_number", "progress", "metrics", "created_at", "started_at", "finished_at"),
        ]
        read_only_fields = fields


class NewRunSerializer(serializers.Serializer[Any]):
    """Which policy is to make a step of what waits."""

    policy = serializers.UUIDField()


class RunFilter(django_filters.FilterSet):
    """Runs of one policy, or in one state."""

    policy = django_filters.UUIDFilter(field_name="policy_id")
    state = django_filters.ChoiceFilter(choices=RunState.choices)

    class Meta:
        model = TrainingRun
        fields = ["policy", "state"]


class RunsApi(ScopedViewSet[TrainingRun]):
    """Training runs of the tenant's policies."""

    needs = {"list": Access.VIEW, "retrieve": Access.VIEW, "*": Access.MANAGE}
    of_policy = "policy_id"
    serializer_class = RunSerializer
    filterset_class = RunFilter

    def rows(self) -> QuerySet[TrainingRun]:
        """Return the tenant's runs."""
        return with_sample_counts(TrainingRun.objects.select_related("parent", "version"))

    @extend_schema(request=NewRunSerializer, responses={201: RunSerializer})
    def create(self, request: Any) -> Response:
        """Ask for a step of what waits now. A policy has at most one run under way."""
        del request
        policy = policy_of(self.body(NewRunSerializer)["policy"], field="policy")
        run = runs.request_run(policy=policy, actor=self.caller.actor)
        return Response(RunSerializer(run).data, status=201)

    @extend_schema(request=None, responses=RunSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Any, pk: Any = None) -> Response:
        """End a run without a version; its samples are free again."""
        del request, pk
        run = runs.cancel_run(run_id=self.get_object().pk, actor=self.caller.actor)
        return Response(RunSerializer(run).data)

    @extend_schema(request=None, responses=RunSerializer)
    @action(detail=True, methods=["post"])
    def resume(self, request: Any, pk: Any = None) -> Response:
        """Queue a failed or cancelled run again, with all its tries, for whatever samples wait now."""
        del request, pk
        run = runs.resume_run(run_id=self.get_object().pk, actor=self.caller.actor)
        return Response(RunSerializer(run).data)
