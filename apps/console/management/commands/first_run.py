"""Set a new installation up: operator, tenant, policy and key."""

import argparse
import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import ProgrammingError

from apps.console.first_run import first_run, keep, kept_in
from kernel.errors import AttuneError


class Command(BaseCommand):
    help = (
        "Create the operator, the first tenant, its policy `default` and a key, and print their secrets once. "
        "Run again, it makes only what is missing. Where `make up` keeps them in first-run.json, another key or "
        "password of the same tenant and operator is written there, too."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--operator-email", default="operator@localhost")
        parser.add_argument("--tenant", default="demo", help="slug of the tenant")
        parser.add_argument(
            "--new-key", action="store_true", help="make another key, since none can be shown twice"
        )
        parser.add_argument(
            "--new-password",
            action="store_true",
            help="give the operator another password, which signs them out everywhere and is written to first-run.json",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object; null: made earlier")

    def handle(self, *_args: object, **options: Any) -> None:
        """Set up, then print."""
        try:
            made = first_run(
                operator_email=options["operator_email"],
                tenant_slug=options["tenant"],
                new_key=options["new_key"],
                new_operator_password=options["new_password"],
            )
        except AttuneError as error:
            raise CommandError(error.message) from error
        except ProgrammingError as error:
            raise CommandError(f"the database is not ready (has `migrate` run?): {error}") from error
        kept: dict[str, str] = {}
        if settings.FIRST_RUN_FILE is not None:
            keep(made, settings.FIRST_RUN_FILE)
            kept = kept_in(settings.FIRST_RUN_FILE, made)
        # whoever asks for one of the two is not told how to get the other
        if made.api_key is None and not options["new_password"]:
            self.stderr.write(f"A key exists already{_kept()}: --new-key makes another.")
        if made.operator_password is None and not options["new_key"]:
            self.stderr.write(
                f"The operator exists already{_kept()}: --new-password gives them another password."
            )
        if options["json"]:
            self.stdout.write(json.dumps(made.as_json()))
            return
        width = max(map(len, made.as_json()))
        for name, value in made.as_json().items():
            earlier = f"stands in {settings.FIRST_RUN_FILE}" if kept.get(name) else "not shown again"
            self.stdout.write(f"{name:<{width}}  {value or f'(made earlier, {earlier})'}")


def _kept() -> str:
    return f" ({settings.FIRST_RUN_FILE} has what was made)" if settings.FIRST_RUN_FILE is not None else ""
