"""The web's entry point: dashboard, REST, console."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")

from django.core.asgi import get_asgi_application

from kernel import startup

application = get_asgi_application()
startup.load_addresses()
startup.load_templates()
startup.settle()
