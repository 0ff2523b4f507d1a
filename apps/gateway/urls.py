"""Routes of the gateway."""

from django.urls import path, re_path

from apps.gateway import api, chat, memory

urlpatterns = [
    path("v1/chat/completions", chat.completions),
    path("v1/responses", chat.responses),
    path("v1/models", api.models),
    path("v1/models/<str:name>", api.model),
    path("v1/feedback", api.feedback),
    path("v1/memory", memory.memory),
    path("v1/memory/<str:name>", memory.entry),
    path("healthz", api.healthz),
    path("metrics", api.metrics),
    re_path(r"", api.unknown),
]
