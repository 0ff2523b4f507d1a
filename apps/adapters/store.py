"""The adapter store: where a version's files lie, what they hash to, and what may be thrown away.

<ADAPTER_STORE>/<tenant id>/<policy id>/<number>-<run id, last 8 hex>/
    adapter_config.json  adapter_model.safetensors  optimizer.state  manifest.json
"""

import hashlib
import json
import logging
import shutil
import time
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings

from apps.adapters.models import AdapterVersion
from kernel.errors import AttuneError
from kernel.tenancy import system_scope

logger = logging.getLogger(__name__)

WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"
MANIFEST = "manifest.json"
GARBAGE_AFTER_S = 24 * 3600.0
"""Directories that no version names are kept this long: a run may still be writing, or about to commit."""


class StoreError(AttuneError):
    """A version's files are not there, or are not what its row says."""

    code = "adapter_files"
    status = 409


def absolute(relative: str) -> Path:
    """Return where a row's path points. Raises StoreError where that is outside the store."""
    store = Path(settings.ADAPTER_STORE).resolve()
    parts = PurePosixPath(relative)
    path = (store / parts).resolve()
    if parts.is_absolute() or ".." in parts.parts or not path.is_relative_to(store) or path == store:
        raise StoreError(f"{relative!r} is not a place in the adapter store")
    return path


def relative(directory: Path) -> str:
    """Return what a row says of a directory in the store. Raises StoreError where it is not in there."""
    store = Path(settings.ADAPTER_STORE).resolve()
    path = directory.resolve()
    if not path.is_relative_to(store) or path == store:
        raise StoreError(f"{directory} is not in the adapter store")
    return path.relative_to(store).as_posix()


def version_hash(directory: Path) -> str:
    """Return the SHA-256 of the weights' bytes followed by those of the configuration."""
    digest = hashlib.sha256()
    try:
        for name in (WEIGHTS, CONFIG):
            with (directory / name).open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
    except OSError as error:
        raise StoreError(f"{directory.name}: {name} cannot be read ({error.strerror})") from error
    return digest.hexdigest()


def manifest(directory: Path) -> dict[str, Any]:
    """Return the manifest that the trainer wrote beside the weights."""
    try:
        value = json.loads((directory / MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise StoreError(f"{directory.name}: no readable {MANIFEST} ({error})") from error
    if not isinstance(value, dict):
        raise StoreError(f"{directory.name}: {MANIFEST} is not an object")
    return value


def collect_garbage(*, older_than_s: float = GARBAGE_AFTER_S) -> list[str]:
    """Delete directories that no version names and nobody has touched for so long; return their paths.

    Half-written ones of killed runs (`.<name>.tmp-<pid>`) are among them.
    """
    store = Path(settings.ADAPTER_STORE)
    bound = time.time() - older_than_s
    # looked at before the rows: what is renamed into place afterwards is not on this list
    found = [path for path in store.glob("*/*/*") if path.is_dir() and not path.is_symlink()]
    with system_scope("collect garbage in the adapter store"):
        named = set(AdapterVersion.objects.values_list("path", flat=True))
    deleted = []
    for path in found:
        relative = path.relative_to(store).as_posix()
        if relative in named or _touched(path) > bound:
            continue
        shutil.rmtree(path, ignore_errors=True)
        logger.info("deleted %s: no version names it", relative)
        deleted.append(relative)
    return deleted


def _touched(directory: Path) -> float:
    """Return when anything in the directory was last written, seconds since 1970; now if it is vanishing."""
    try:
        return max(path.stat().st_mtime for path in (directory, *directory.iterdir()))
    except OSError:
        return time.time()
