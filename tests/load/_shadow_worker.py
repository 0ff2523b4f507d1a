"""Look for something to teach as often as the clock of `workers.app` does, and nothing else: `python -m tests.load._shadow_worker`."""

import os
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
django.setup()

from workers import shadow  # noqa: E402 - settings come first
from workers.app import app  # noqa: E402

if __name__ == "__main__":
    every_s = float(app.conf.beat_schedule["shadow"]["schedule"])
    print("looking", flush=True)
    while True:
        began = time.monotonic()
        shadow.look()
        time.sleep(max(0.0, every_s - (time.monotonic() - began)))
