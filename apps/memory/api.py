"""REST: how a policy uses memory."""

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from apps.adapters.selectors import policy_of
from apps.memory.models import LAST_HOUR, MOST_BUDGET_TOKENS, MOST_SHADOW_TOKENS, MemorySetting
from apps.memory.selectors import setting_of
from apps.memory.services import set_setting
from apps.memory.use import use_of
from kernel.rest.caller import Access
from kernel.rest.reading import read
from kernel.rest.views import IN_THE_ADDRESS, ScopedView


class MemorySettingSerializer(serializers.Serializer[Any]):
    """How a policy uses memory; null is as the platform has it, what is left out stays."""

    in_prompt = serializers.BooleanField(
        required=False, help_text="Whether its model is told what people asked for."
    )
    budget_tokens = serializers.IntegerField(
        min_value=0,
        max_value=MOST_BUDGET_TOKENS,
        required=False,
        allow_null=True,
        help_text="The most that this takes of a prompt.",
    )
    shadow = serializers.BooleanField(
        required=False, help_text="Whether its weights take that over in quiet minutes."
    )
    shadow_tokens_per_day = serializers.IntegerField(
        min_value=0,
        max_value=MOST_SHADOW_TOKENS,
        required=False,
        allow_null=True,
        help_text="The most that is written for it in 24 hours.",
    )
    shadow_from_hour = serializers.IntegerField(
        min_value=0,
        max_value=LAST_HOUR,
        required=False,
        allow_null=True,
        help_text="It begins at this hour, UTC; null, with the other one: at any.",
    )
    shadow_until_hour = serializers.IntegerField(
        min_value=0,
        max_value=LAST_HOUR,
        required=False,
        allow_null=True,
        help_text="… and ends at this one; before the first: on the next day.",
    )


class MemoryUseSerializer(serializers.Serializer[Any]):
    """What holds after the platform was asked too."""

    in_prompt = serializers.BooleanField()
    budget_tokens = serializers.IntegerField()
    shadow = serializers.BooleanField(help_text="Also false where the platform has switched it off for all.")
    shadow_tokens_per_day = serializers.IntegerField()
    shadow_from_hour = serializers.IntegerField(allow_null=True)
    shadow_until_hour = serializers.IntegerField(allow_null=True)


class PolicyMemorySerializer(serializers.Serializer[Any]):
    """A policy's own setting of memory, and what holds."""

    own = MemorySettingSerializer()
    holds = MemoryUseSerializer()


class PolicyMemoryApi(ScopedView):
    """How a policy uses memory."""

    needs = {"*": Access.VIEW}
    of_policy = IN_THE_ADDRESS
    serializer_class = PolicyMemorySerializer

    @extend_schema(responses=PolicyMemorySerializer)
    def get(self, request: Any, pk: uuid.UUID) -> Response:
        """Show a policy's own setting of memory, and what holds with the platform's."""
        del request
        return self._shown(setting_of(policy_of(pk).pk))

    @extend_schema(request=MemorySettingSerializer, responses=PolicyMemorySerializer)
    def patch(self, request: Any, pk: uuid.UUID) -> Response:
        """Change it, from the next request and the next quiet minute on."""
        self.caller.require(Access.MANAGE)
        policy = policy_of(pk)
        asked = read(MemorySettingSerializer(data=request.data))
        return self._shown(set_setting(policy=policy, actor=self.caller.actor, **asked))

    def _shown(self, own: MemorySetting) -> Response:
        return Response(PolicyMemorySerializer({"own": own, "holds": use_of(own)}).data)
