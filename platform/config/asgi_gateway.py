"""The gateway's entry point: /v1 and nothing else."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
os.environ["ATTUNE_PROCESS"] = "gateway"

from django.core.asgi import get_asgi_application

from apps.gateway.asgi import Gateway

application = Gateway(get_asgi_application())
