"""Read settings from the environment, with an error that names the variable."""

import json
import os
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str | None = None) -> str:
    """Return a variable's value; without a default it must be set."""
    value = os.environ.get(name, default)
    if value is None:
        raise ImproperlyConfigured(f"Set the environment variable {name}.")
    return value


def integer(name: str, default: int) -> int:
    """Return a whole number; an empty value is none."""
    raw = os.environ.get(name)
    if not raw:
        return default
    try:
        return int(raw)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}={raw!r} is not a whole number.") from error


def number(name: str, default: float) -> float:
    """Return a number; an empty value is none."""
    raw = os.environ.get(name)
    if not raw:
        return default
    try:
        return float(raw)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}={raw!r} is not a number.") from error


def flag(name: str, *, default: bool) -> bool:
    """Return whether a variable is switched on (1, true, yes, on); an empty value says nothing."""
    raw = os.environ.get(name)
    return default if not raw else raw.strip().lower() in {"1", "true", "yes", "on"}


def listed(name: str, default: str = "") -> list[str]:
    """Return the parts of a comma-separated value."""
    return [part.strip() for part in os.environ.get(name, default).split(",") if part.strip()]


def mapping(name: str) -> dict[str, Any]:
    """Return a JSON object; without the variable an empty one."""
    raw = os.environ.get(name, "{}")
    try:
        value = json.loads(raw)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ImproperlyConfigured(f"{name} is not a JSON object.")
    return value


def path(name: str, default: Path) -> Path:
    """Return an absolute path."""
    return Path(os.environ.get(name) or default).expanduser().absolute()


ADOPTED = "ATTUNE_ADOPTED"
"""Holds the names of the variables that `adopt` set,
so that a platform that is started anew can do without them."""


def adopt(file: Path) -> None:
    """Take the variables that are not set from a JSON object, where there is such a file."""
    if file.is_file():
        found = json.loads(file.read_text(encoding="utf-8"))
        taken = [name for name in found if name not in os.environ]
        os.environ.update({name: found[name] for name in taken})
        os.environ[ADOPTED] = " ".join([*os.environ.get(ADOPTED, "").split(), *taken])
