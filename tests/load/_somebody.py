"""Make a tenant with a key, and an engine that is ready: `python -m tests.load._somebody ENGINE_URL` prints the key."""

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
django.setup()

from apps.engines.models import Engine, EngineState  # noqa: E402 - settings come first
from tests.tenants import add_somebody  # noqa: E402

if __name__ == "__main__":
    Engine.objects.create(url=sys.argv[1], state=EngineState.READY, boot_id="1")
    print(add_somebody().secret)
