"""What the web answers."""

from django.contrib import admin
from django.urls import include, path

from apps.accounts.addresses import Addresses

handler403 = "apps.dashboard.errors.refused"
handler500 = "apps.dashboard.errors.broke"
urlpatterns = [
    path("console/", admin.site.urls),
    path("accounts/email/", Addresses.as_view(), name="account_email"),
    path("accounts/", include("allauth.urls")),
    path("api/", include("config.urls_api")),
    path("", include("apps.dashboard.urls")),
]
