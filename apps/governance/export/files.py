"""Where archives lie: <EXPORT_STORE>/<tenant id>/<export id>-<fence>.zip.

No word of anybody's is part of a name.
"""

import logging
import time
from pathlib import Path

from django.conf import settings

from apps.governance.models import Export, ExportState
from kernel.tenancy import system_scope

logger = logging.getLogger(__name__)

GARBAGE_AFTER_S = 3600.0
"""Files that no export names are kept this long: one may be about to finish."""


def place_of(export: Export) -> Path:
    """Return where the file of an export is, or would be, under its present fence."""
    return Path(settings.EXPORT_STORE) / str(export.tenant_id) / f"{export.pk}-{export.fence}.zip"


def make_room_for(export: Export) -> Path:
    """Return the place of an export's file, with its folder made."""
    place = place_of(export)
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return place


def collect_garbage(*, older_than_s: float = GARBAGE_AFTER_S) -> list[str]:
    """Delete the files that no export which can be fetched names; return their names."""
    store = Path(settings.EXPORT_STORE)
    bound = time.time() - older_than_s
    # looked at before the rows: what is renamed into place afterwards is not on this list
    found = [path for path in store.glob("*/*") if path.is_file() and not path.is_symlink()]
    with system_scope("garbage exports"):
        kept = Export.objects.filter(state__in=(ExportState.READY, ExportState.RUNNING))
        named = {place_of(export).name for export in kept}
    named |= {f".{name}.part" for name in named}
    deleted = []
    for path in found:
        if path.name not in named and _written(path) < bound:
            path.unlink(missing_ok=True)
            deleted.append(path.name)
    return deleted


def forget(export: Export) -> None:
    """Delete an export's file, if it is there."""
    place_of(export).unlink(missing_ok=True)


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()
