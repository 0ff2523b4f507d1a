"""REST: how a policy learns, what that was before, and presets for it."""

import uuid
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from apps.adapters.models import Policy, PolicyConfig
from apps.learning.config import described, resolve
from apps.learning.configuring import OPERATORS, configure
from apps.learning.presets import PRESETS, preset_of
from kernel.errors import InvalidInput, NotFound
from kernel.rest.caller import Access
from kernel.rest.reading import read
from kernel.rest.views import IN_THE_ADDRESS, ScopedView, ScopedViewSet

_DRIFT = {
    "type": "object",
    "description": "Bounds of drift by measure: {measure: {limit, action, in_a_row}}.",
    "additionalProperties": {"type": "object"},
}


def add_settings(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Describe the settings once, for every operation that speaks of them: a hook of the description of /api."""
    result["components"]["schemas"] |= {
        "TrainingOverrides": {"type": "object", "properties": {**described(), "drift": _DRIFT}},
        "TrainingChange": {
            "type": "object",
            "properties": {
                **{name: schema for name, schema in described().items() if name not in OPERATORS},
                "drift": _DRIFT,
            },
            "additionalProperties": False,
        },
        "TrainingConfig": {"type": "object", "properties": described()},
    }
    return result


@extend_schema_field({"$ref": "#/components/schemas/TrainingOverrides"})
class OverridesField(serializers.JSONField):
    """Settings by name."""


@extend_schema_field({"$ref": "#/components/schemas/TrainingChange"})
class ChangeField(serializers.JSONField):
    """Settings by name, of those that are the tenant's to set."""


class ConfigSerializer(serializers.ModelSerializer[PolicyConfig]):
    """One configuration of a policy."""

    policy = serializers.UUIDField(source="policy_id")
    config = OverridesField(source="overrides", help_text="What differs from the platform's settings.")

    class Meta:
        model = PolicyConfig
        fields = ["policy", "number", "config", "actor", "created_at"]
        read_only_fields = fields


class CurrentConfigSerializer(ConfigSerializer):
    """How a policy learns now."""

    preset = serializers.SerializerMethodField(
        help_text="The preset that this is, as far as presets speak of it; empty for none."
    )
    resolved = serializers.SerializerMethodField(help_text="Every setting and the value that holds now.")

    class Meta(ConfigSerializer.Meta):
        fields = [*ConfigSerializer.Meta.fields, "preset", "resolved"]
        read_only_fields = fields

    def get_preset(self, row: PolicyConfig) -> str:
        """Return the preset's name; none where the platform no longer takes the configuration."""
        try:
            return preset_of(row.overrides)
        except InvalidInput:
            return ""

    @extend_schema_field({"allOf": [{"$ref": "#/components/schemas/TrainingConfig"}], "nullable": True})
    def get_resolved(self, row: PolicyConfig) -> dict[str, Any] | None:
        """Return all values; null where the platform no longer takes the configuration: then nothing is trained."""
        try:
            return resolve(row.overrides).to_json()
        except InvalidInput:
            return None


class ConfigChangeSerializer(serializers.Serializer[Any]):
    """What is to hold from the next run on: the preset, where one is named, and the settings on top of it."""

    preset = serializers.ChoiceField(choices=[preset.name for preset in PRESETS], required=False)
    config = ChangeField(required=False, help_text="What is to differ from the preset.")
    number = serializers.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        required=False,
        help_text="The number that the change was thought of against: another by now is a conflict.",
    )

    def validate_config(self, config: Any) -> Any:
        """Only an object has settings."""
        if not isinstance(config, dict):
            raise serializers.ValidationError("config is an object of settings")
        return config


class PresetSerializer(serializers.Serializer[Any]):
    """A few numbers that belong together."""

    name = serializers.CharField()
    about = serializers.CharField(help_text="For whom it is.")
    config = OverridesField(source="overrides", help_text="What it sets.")


class ConfigApi(ScopedView):
    """How a policy learns."""

    needs = {"*": Access.VIEW}
    of_policy = IN_THE_ADDRESS
    serializer_class = CurrentConfigSerializer

    @extend_schema(responses=CurrentConfigSerializer)
    def get(self, request: Any, pk: uuid.UUID) -> Response:
        """Show the configuration that the next run will be taken under."""
        del request
        policy = _policy(pk)
        row = PolicyConfig.objects.get(policy=policy, number=policy.config_number)
        return Response(CurrentConfigSerializer(row).data)

    @extend_schema(request=ConfigChangeSerializer, responses=CurrentConfigSerializer)
    def put(self, request: Any, pk: uuid.UUID) -> Response:
        """Set the whole configuration: what is not named is as the preset, or else the platform, has it."""
        return self._change(request, pk, whole=True)

    @extend_schema(request=ConfigChangeSerializer, responses=CurrentConfigSerializer)
    def patch(self, request: Any, pk: uuid.UUID) -> Response:
        """Change some settings; what neither the body nor its preset speaks of stays."""
        return self._change(request, pk, whole=False)

    def _change(self, request: Any, pk: uuid.UUID, *, whole: bool) -> Response:
        self.caller.require(Access.MANAGE)
        _policy(pk)
        asked = read(ConfigChangeSerializer(data=request.data))
        row = configure(
            policy_id=pk,
            actor=self.caller.actor,
            config=asked.get("config", {}),
            preset=asked.get("preset"),
            whole=whole,
            expected=asked.get("number"),
        )
        return Response(CurrentConfigSerializer(row).data)


def _policy(pk: uuid.UUID) -> Policy:
    policy = Policy.objects.filter(pk=pk).first()
    if policy is None:
        raise NotFound("There is no such thing here.")
    return policy


class ConfigsApi(ScopedViewSet[PolicyConfig]):
    """What a policy's configuration was, newest first."""

    needs = {"list": Access.VIEW}
    of_policy = IN_THE_ADDRESS
    serializer_class = ConfigSerializer

    def rows(self) -> QuerySet[PolicyConfig]:
        """Return the policy's configurations."""
        rows = PolicyConfig.objects.filter(policy_id=self.kwargs["pk"])
        if not rows.exists():  # every policy has one
            raise NotFound("There is no such thing here.")
        return rows

    def list(self, request: Any, pk: Any = None) -> Response:
        """List the configurations that the policy had, with who made them, newest first."""
        del pk
        return super().list(request)


class PresetsApi(ScopedView):
    """Presets of configurations."""

    needs = {"*": Access.VIEW}
    serializer_class = PresetSerializer
    pagination_class = None

    @extend_schema(responses=PresetSerializer(many=True))
    def get(self, request: Any) -> Response:
        """List the presets and what each sets, under the platform's settings of now."""
        del request
        found = [{"name": one.name, "about": one.about, "overrides": one.overrides()} for one in PRESETS]
        return Response(PresetSerializer(found, many=True).data)
