"""What stands under /api: every room's REST face, and the description of them all."""

from typing import Any

from django.urls import URLPattern, URLResolver, path, re_path
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.routers import SimpleRouter

from apps.accounts.api import MembersApi, TenantApi
from apps.adapters.api import PoliciesApi, VersionsApi
from apps.alerts.api import DeliveriesApi, WebhooksApi
from apps.conversations.api import FeedbackApi, SessionsApi, TurnsApi
from apps.dashboard.api import ViewsApi
from apps.governance.api import ExportsApi
from apps.governance.deletions_api import DeletionsApi
from apps.judging.api import JudgementsApi
from apps.judging.settings_api import JudgingApi, PolicyJudgingApi, RubricsApi
from apps.keys.api import KeysApi
from apps.learning.api import RunsApi, SamplesApi
from apps.learning.config_api import ConfigApi, ConfigsApi, PresetsApi
from apps.learning.opt_outs_api import OptOutsApi
from apps.memory.api import PolicyMemoryApi
from kernel.rest.views import Nowhere, ScopedViewSet

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
VIEWSETS: dict[str, type[ScopedViewSet[Any]]] = {
    "members": MembersApi,
    "keys": KeysApi,
    "policies": PoliciesApi,
    "versions": VersionsApi,
    "sessions": SessionsApi,
    "turns": TurnsApi,
    "feedback": FeedbackApi,
    "judgements": JudgementsApi,
    "samples": SamplesApi,
    "runs": RunsApi,
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
    path("presets", PresetsApi.as_view(), name="presets"),
    path("judging", JudgingApi.as_view(), name="judging"),
    path("policies/<uuid:pk>/judging", PolicyJudgingApi.as_view(), name="policy_judging"),
    path("policies/<uuid:pk>/memory", PolicyMemoryApi.as_view(), name="policy_memory"),
    path("policies/<uuid:pk>/config", ConfigApi.as_view(), name="config"),
    path("policies/<uuid:pk>/configs", ConfigsApi.as_view({"get": "list"}), name="configs"),
    *router.urls,
    re_path("", Nowhere.as_view()),
]
