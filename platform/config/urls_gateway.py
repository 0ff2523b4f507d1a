"""What the gateway answers."""

from django.urls import include, path

urlpatterns = [path("", include("apps.gateway.urls"))]
