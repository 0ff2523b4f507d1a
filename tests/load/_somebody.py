"""Make a tenant with a key, and an engine that is ready: `python -m tests.load._somebody ENGINE_URL` prints the key."""

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
django.setup()

from apps.engines.models import Engine, EngineState  # noqa: E402 - settings come first
from apps.keys.services import set_limit  # noqa: E402
from tests.tenants import add_somebody  # noqa: E402

MANY = 2_000_000_000  # limits that hold and are never met

if __name__ == "__main__":
    Engine.objects.create(url=sys.argv[1], state=EngineState.READY, boot_id="1")
    somebody = add_somebody()
    for key_id in (somebody.key.id, None):
        set_limit(
            tenant_id=somebody.tenant.id,
            key_id=key_id,
            actor="bench",
            requests_per_minute=MANY,
            tokens_per_minute=MANY,
            concurrent=1_000,
        )
    print(somebody.secret)
