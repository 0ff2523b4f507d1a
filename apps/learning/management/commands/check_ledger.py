"""Check that every finished turn has a sample, a stated reason or something it waits for."""

import argparse
import datetime as dt
import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.accounts.models import Tenant
from apps.judging.reasons import explained
from apps.learning.accounts import LATE_AFTER, Books, books
from kernel.tenancy import system_scope, tenant_scope


class Command(BaseCommand):
    help = (
        "Count what became of every finished turn, by reason, and check that the sums agree. "
        "Exits with 1 where they do not."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--tenant", help="one tenant's slug; all of them where it is left out")
        parser.add_argument(
            "--late-after",
            type=float,
            default=LATE_AFTER.total_seconds(),
            help="seconds after which a turn that waits for nothing counts as lost",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: object, **options: Any) -> None:
        """Print the books; end with 1 where they do not agree."""
        found = self._books(options["tenant"], dt.timedelta(seconds=options["late_after"]))
        if options["json"]:
            self.stdout.write(json.dumps({**asdict(found), "agrees": not found.problems}, sort_keys=True))
        else:
            self._print(found)
        if found.problems:
            sys.exit(1)

    def _books(self, slug: str | None, late_after: dt.timedelta) -> Books:
        if slug is None:
            with system_scope("check the ledger"):
                return books(late_after=late_after)
        with system_scope("find the tenant"):
            tenant = Tenant.objects.filter(slug=slug).first()
        if tenant is None:
            raise CommandError(f"there is no tenant {slug}")
        with tenant_scope(tenant.id):
            return books(late_after=late_after)

    def _print(self, found: Books) -> None:
        self.stdout.write(f"{found.finished:>9} finished turns, shadow turns among them")
        for state, count in sorted(found.samples.items()):
            self.stdout.write(f"{count:>9} {state}")
        for reason, count in found.reasons.items():
            self.stdout.write(f"{count:>11} {reason}: {explained(reason) or 'not a listed reason'}")
        for what, count in sorted(found.waiting.items()):
            self.stdout.write(f"{count:>9} {what}")
        for problem in found.problems:
            self.stdout.write(self.style.ERROR(f"does not agree: {problem}"))
        if not found.problems:
            self.stdout.write("the sums agree")
