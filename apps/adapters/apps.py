from django.apps import AppConfig


class AdaptersConfig(AppConfig):
    name = "apps.adapters"
    label = "adapters"
    default_auto_field = "django.db.models.BigAutoField"
