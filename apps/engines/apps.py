from django.apps import AppConfig


class EnginesConfig(AppConfig):
    name = "apps.engines"
    label = "engines"
    default_auto_field = "django.db.models.BigAutoField"
