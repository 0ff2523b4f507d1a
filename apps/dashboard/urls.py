"""Addresses of the pages for tenants."""

from django.urls import path
from django.views.generic import RedirectView

from apps.dashboard import views

app_name = "dashboard"
urlpatterns = [
    path("", views.overview, name="overview"),
    path("healthz", views.healthz, name="healthz"),
    path("favicon.ico", RedirectView.as_view(url="/static/attune/favicon.svg"), name="favicon"),
]
