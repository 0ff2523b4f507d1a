"""Send a file of any size: some bytes at a time, from where the client left off."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase

from apps.accounts.models import Tenant
from apps.governance.export import files
from apps.governance.models import Export, ExportState
from kernel.errors import NotFound
from kernel.streams import one_by_one

_CHUNK = 1 << 18
_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{0,18})")  # fewer digits than a number may have


def send_export(request: HttpRequest, export: Export, tenant: Tenant) -> HttpResponseBase:
    """Return an export's file, whole or (`Range: bytes=…`) from where the client left off.

    Raises NotFound where there is none: not yet, no more, or not on this machine.
    """
    if export.state != ExportState.READY or export.size is None:
        raise NotFound(f"There is no file of this export: it is {export.state}.", code="export_not_ready")
    try:
        file = files.place_of(export).open("rb")
    except OSError as error:
        raise NotFound(
            "The file of this export is not on this machine: the operator's EXPORT_STORE is not shared.",
            code="export_file_missing",
        ) from error
    begin, end = _wanted(request, export)
    partial = (begin, end) != (0, export.size)
    response = StreamingHttpResponse(
        one_by_one(_pieces(file, begin, end)),
        status=206 if partial else 200,
        content_type="application/zip",
    )
    response.headers["Content-Length"] = str(end - begin)
    response.headers["Accept-Ranges"] = "bytes"
    response.headers["ETag"] = f'"{export.sha256}"'
    response.headers["Content-Disposition"] = f'attachment; filename="{name_of(export, tenant)}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    if partial:
        response.headers["Content-Range"] = f"bytes {begin}-{end - 1}/{export.size}"
    return response


def name_of(export: Export, tenant: Tenant) -> str:
    """Return what the file is called on the reader's disk: letters, digits, dots and hyphens."""
    moment = export.snapshot_at or export.created_at
    return Path(f"attune-{tenant.slug}-{moment:%Y%m%d-%H%M}-{export.pk.hex[-8:]}.zip").name


def _wanted(request: HttpRequest, export: Export) -> tuple[int, int]:
    """Return the bytes [begin, end) that are asked for; all of them for a range that means nothing here."""
    size = export.size or 0
    found = _RANGE.fullmatch(request.headers.get("Range", ""))
    if found is None or request.headers.get("If-Range", f'"{export.sha256}"') != f'"{export.sha256}"':
        return 0, size
    begin, end = int(found[1]), min(int(found[2]) + 1 if found[2] else size, size)
    return (begin, end) if begin < end else (0, size)


def _pieces(file: IO[bytes], begin: int, end: int) -> Iterator[bytes]:
    with file:
        file.seek(begin)
        left = end - begin
        while left > 0 and (piece := file.read(min(_CHUNK, left))):
            left -= len(piece)
            yield piece
