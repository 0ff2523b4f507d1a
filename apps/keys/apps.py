from django.apps import AppConfig


class KeysConfig(AppConfig):
    name = "apps.keys"
    label = "keys"
    default_auto_field = "django.db.models.BigAutoField"
