"""What stands under /api: every room's REST face, and the description of them all."""

from typing import Any

from django.urls import URLPattern, URLResolver, path, re_path
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.routers import SimpleRouter

from apps.accounts.api import MembersApi, TenantApi
from apps.accounts.invitations_api import InvitationsApi
from apps.adapters.api import MovesApi, PoliciesApi, VersionsApi
from apps.alerts.api import DeliveriesApi, WebhooksApi
from apps.conversations.api import FeedbackApi, SessionsApi, TurnsApi
from apps.dashboard.api import ViewsApi
from apps.dashboard.metrics_api import MetricsApi
from apps.governance.api import ExportsApi
from apps.governance.deletions_api import DeletionsApi
from apps.judging.api import JudgementsApi
from apps.judging.settings_api import JudgingApi, PolicyJudgingApi, RubricsApi
from apps.keys.api import KeysApi, TenantLimitsApi
from apps.learning.api import RunsApi, SamplesApi
from apps.learning.config_api import ConfigApi, ConfigsApi, PresetsApi
from apps.learning.drift_api import CrossingsApi, ReadingsApi
from apps.learning.opt_outs_api import OptOutsApi
from apps.memory.api import PolicyMemoryApi
from apps.memory.entries_api import MemoryApi
from kernel.rest.views import Nowhere, ScopedViewSet

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
VIEWSETS: dict[str, type[ScopedViewSet[Any]]] = {
    "members": MembersApi,
    "invitations": InvitationsApi,
    "keys": KeysApi,
    "policies": PoliciesApi,
    "versions": VersionsApi,
    "moves": MovesApi,
    "sessions": SessionsApi,
    "turns": TurnsApi,
    "feedback": FeedbackApi,
    "judgements": JudgementsApi,
    "samples": SamplesApi,
    "runs": RunsApi,
    "drift-readings": ReadingsApi,
    "drift-crossings": CrossingsApi,
    "memory": MemoryApi,
    "exports": ExportsApi,
    "deletions": DeletionsApi,
    "rubrics": RubricsApi,
    "opt-outs": OptOutsApi,
    "webhooks": WebhooksApi,
    "deliveries": DeliveriesApi,
    "views": ViewsApi,
}
for name, viewset in VIEWSETS.items():
    router.register(name, viewset, basename=name)

app_name = "api"
urlpatterns: list[URLPattern | URLResolver] = [
    path("openapi.json", SpectacularJSONAPIView.as_view(), name="openapi"),
    path("tenant", TenantApi.as_view(), name="tenant"),
    path("metrics", MetricsApi.as_view(), name="metrics"),
    path("tenant/limits", TenantLimitsApi.as_view(), name="tenant_limits"),
    path("presets", PresetsApi.as_view(), name="presets"),
    path("judging", JudgingApi.as_view(), name="judging"),
    path("policies/<uuid:pk>/judging", PolicyJudgingApi.as_view(), name="policy_judging"),
    path("policies/<uuid:pk>/memory", PolicyMemoryApi.as_view(), name="policy_memory"),
    path("policies/<uuid:pk>/config", ConfigApi.as_view(), name="config"),
    path("policies/<uuid:pk>/configs", ConfigsApi.as_view({"get": "list"}), name="configs"),
    *router.urls,
    re_path("", Nowhere.as_view()),
]
