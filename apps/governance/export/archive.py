"""Write the archive: one zip, one file after the other, never more than some rows in memory."""

import datetime as dt
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from django.utils import timezone

from apps.accounts.models import Tenant
from apps.governance.export import tables, trl
from apps.governance.export.privacy import Privacy
from apps.governance.export.snapshot import snapshot
from apps.governance.export.tables import Part

FORMAT = 1
_BUFFER = 1 << 18  # bytes that are compressed at once
_LEVEL = 5


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an archive is: the file that is being written,
    rows read of all that were counted in the snapshot."""

    part: str
    done: int
    total: int
    snapshot_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Archive:
    """A written archive."""

    size: int
    """Bytes."""
    sha256: str
    snapshot_at: dt.datetime
    rows: dict[str, int] = field(default_factory=dict)
    """Lines of each file."""


Heard = Callable[[Progress], None]
"""Is told how far the archive is; what it raises ends the writing."""


def write_archive(path: Path, *, tenant: Tenant, heard: Heard = lambda _progress: None) -> Archive:
    """Write everything of the tenant in scope to `path`,
    which is there only once it is whole and on the disk.

    All rows are of one moment (`snapshot`). Must not run inside a transaction.
    """
    beside = path.with_name(f".{path.name}.part")
    try:
        with beside.open("xb") as file:
            os.fchmod(file.fileno(), 0o600)
            moment, rows = _written(file, tenant, heard)
            file.flush()
            os.fsync(file.fileno())
        size, digest = beside.stat().st_size, _digest(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    _keep_name(path.parent)
    return Archive(size, digest, moment, rows)


def _written(file: IO[bytes], tenant: Tenant, heard: Heard) -> tuple[dt.datetime, dict[str, int]]:
    parts: Sequence[Part] = (*tables.PARTS, tables.audit_part(tenant.pk), *trl.PARTS)
    rows: dict[str, int] = {}
    with (
        snapshot() as moment,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive,
    ):
        total = sum(part.rows().count() for part in parts)
        privacy, read = Privacy(), 0
        archive.writestr("README.txt", _readme(tenant, moment, parts))
        for part in parts:
            heard(Progress(part.name, read, total, moment))
            rows[part.name] = 0
            with archive.open(part.name, "w", force_zip64=True) as target:
                waiting = bytearray()
                for line in part.lines(privacy):
                    read += 1
                    if line is not None:
                        waiting += json_line(line)
                        rows[part.name] += 1
                    if len(waiting) >= _BUFFER:
                        target.write(waiting)
                        waiting.clear()
                    heard(Progress(part.name, read, total, moment))
                target.write(waiting)
        archive.writestr("manifest.json", _manifest(tenant, moment, rows, privacy))
    return moment, rows


def json_line(row: dict[str, Any]) -> bytes:
    """Return a row as one line of JSON; ids and times as texts."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False, default=_text).encode() + b"\n"


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, dt.datetime) else str(value)


def _manifest(tenant: Tenant, moment: dt.datetime, rows: dict[str, int], privacy: Privacy) -> str:
    return json.dumps(
        {
            "format": FORMAT,
            "tenant": {"id": str(tenant.pk), "slug": tenant.slug, "name": tenant.name},
            "snapshot_at": moment.isoformat(),
            "written_at": timezone.now().isoformat(),
            "rows": rows,
            "personal_data": privacy.described(),
        },
        ensure_ascii=False,
        indent=2,
    )


def _readme(tenant: Tenant, moment: dt.datetime, parts: Sequence[Part]) -> str:
    width = max(len(part.name) for part in parts)
    files = "\n".join(f"  {part.name.ljust(width)}  {part.says}" for part in parts)
    return f"""Everything that {tenant.slug} has in Attune, as of {moment.isoformat()}.

Each file holds one JSON object a line (UTF-8); ids join them. manifest.json counts the lines, and was written last:
without it the archive is not whole.

{files}

Where a policy's setting for personal data is `redact` or `drop`, what was found stands as its kind in brackets, and a
turn in which anything was found comes without its tokens ("redacted": true). manifest.json says which setting was
applied to which policy. Keys, secrets and passwords are in no file.
"""


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _keep_name(folder: Path) -> None:
    """See to it that a renamed file is found under its name after a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
