"""Let a policy answer from another of its versions."""

import argparse
import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.adapters.services import rollback
from kernel.errors import AttuneError


class Command(BaseCommand):
    help = "Let a policy answer from another of its versions; 0 is the bare base. Takes effect with the next request."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("policy", help="its name in the tenant, like default")
        parser.add_argument("version", type=int, help="the version's number; 0 is the bare base")
        parser.add_argument("--tenant", required=True, help="the tenant's slug")
        parser.add_argument("--reason", default="", help="kept with the move and in the audit")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: object, **options: Any) -> None:
        """Move the pointer, or say why not."""
        if options["version"] < 0:
            raise CommandError("versions are numbered from 0, the bare base")
        try:
            done = rollback(
                tenant=options["tenant"],
                policy=options["policy"],
                number=options["version"],
                reason=options["reason"],
            )
        except AttuneError as error:
            raise CommandError(error.message) from error
        if options["json"]:
            self.stdout.write(json.dumps(asdict(done)))
        elif done.before == done.now:
            self.stdout.write(f"{done.tenant}/{done.policy} answers from version {done.now} already")
        else:
            self.stdout.write(
                f"{done.tenant}/{done.policy} answers from version {done.now} (before: {done.before})"
            )
