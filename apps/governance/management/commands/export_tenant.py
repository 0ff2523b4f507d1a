"""Write everything that a tenant has into one archive."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.accounts.models import Tenant
from apps.governance.export.archive import Progress, write_archive
from kernel import audit
from kernel.tenancy import system_scope, tenant_scope

_SHOWN_EVERY_S = 1.0


class Command(BaseCommand):
    help = (
        "Write everything that a tenant has into one zip of JSON lines, as of one moment: sessions, turns with their "
        "tokens, verdicts, samples, runs, versions, memory, feedback, audit log, and rows in the layouts that TRL "
        "reads. The file is there only once it is whole; stopped, the command is run again. Audited."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("tenant", help="the tenant's slug")
        parser.add_argument("file", type=Path, help="the archive to be written; must not be there yet")
        parser.add_argument("--json", action="store_true", help="print one JSON object, and no progress")

    def handle(self, *_args: object, **options: Any) -> None:
        """Write the archive; say how far it is on stderr."""
        place: Path = options["file"].resolve()
        if place.exists():
            raise CommandError(f"{place} is there already")
        with system_scope("find the tenant"):
            tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"there is no tenant {options['tenant']}")
        with tenant_scope(tenant.pk):
            try:
                archive = write_archive(place, tenant=tenant, heard=self._shown(quiet=options["json"]))
            except OSError as error:
                raise CommandError(f"{place} cannot be written: {error}") from error
            audit.record(
                actor="system:export_tenant",
                action="export.written",
                target=f"tenant:{tenant.pk}",
                tenant_id=tenant.pk,
                detail={"rows": archive.rows, "bytes": archive.size, "sha256": archive.sha256},
            )
        if options["json"]:
            told = {"file": str(place), "bytes": archive.size, "sha256": archive.sha256, "rows": archive.rows}
            self.stdout.write(json.dumps({**told, "snapshot_at": archive.snapshot_at.isoformat()}))
            return
        for name, rows in archive.rows.items():
            self.stdout.write(f"{rows:>9} {name}")
        self.stdout.write(f"{archive.size:>9} bytes in {place}, SHA-256 {archive.sha256}")

    def _shown(self, *, quiet: bool) -> Any:
        due = 0.0

        def show(progress: Progress) -> None:
            nonlocal due
            if quiet or time.monotonic() < due:
                return
            due = time.monotonic() + _SHOWN_EVERY_S
            print(f"{progress.part}: {progress.done} of {progress.total} rows", file=sys.stderr)

        return show
