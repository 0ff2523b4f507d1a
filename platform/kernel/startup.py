"""What a process that answers people does before the first of them comes."""

import gc
from pathlib import Path

from django.template import TemplateSyntaxError, engines
from django.urls import get_resolver


def load_addresses() -> None:
    """Import all views and compile all addresses of the process's URLconf."""
    get_resolver().reverse_dict  # noqa: B018  (they are compiled by being asked for)


def load_templates() -> None:
    """Compile every page (*.html), its own and those of the installed apps;
    mails (*.txt) wait until one is sent."""
    for engine in engines.all():
        for directory in map(Path, engine.template_dirs):
            for path in sorted(directory.rglob("*.html")):
                try:
                    engine.get_template(str(path.relative_to(directory)))
                except TemplateSyntaxError:
                    continue  # one for an app that is not installed, whose tags are not there either


def settle() -> None:
    """Take what is loaded out of all later garbage collections.

    It lives as long as the process does, and a full collection walks all of it: some 200,000 objects, for
    about a tenth of a second in which nobody is answered, every few hundred requests.
    """
    gc.collect()
    gc.freeze()
