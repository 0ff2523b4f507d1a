#!/usr/bin/env python
"""Run a management command: `python manage.py help`."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Find the source roots, then run the command."""
    root = Path(__file__).resolve().parent
    # `platform/` holds config, kernel and embedded; it must never win over the standard library's module
    for place in (str(root / "platform"), str(root)):
        if place not in sys.path:
            sys.path.append(place)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
    from config.command_line import run

    sys.exit(run(sys.argv))


if __name__ == "__main__":
    main()
