"""Make a webhook endpoint of a tenant, or give one another secret; the secret is printed, once."""

import argparse
import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.accounts.selectors import tenant_by_slug
from apps.alerts.endpoints import create_endpoint, rotate_secret
from apps.alerts.models import TOLD_OF
from kernel.errors import AttuneError
from kernel.tenancy import system_scope, tenant_scope

ACTOR = "system:command line"
_EVENTS = [event.value for event in TOLD_OF]


class Command(BaseCommand):
    help = "Tell an address of a tenant of chosen events. The signing secret is printed once."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--tenant", required=True, help="slug of the tenant")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--url", help="address of a new endpoint, https://…")
        what.add_argument(
            "--rotate",
            type=uuid.UUID,
            metavar="ID",
            help="endpoint to give another secret; both sign for a day",
        )
        parser.add_argument("--events", nargs="+", choices=_EVENTS, default=_EVENTS)

    def handle(self, *_args: object, **options: Any) -> None:
        """Do it and print the secret alone on standard output."""
        try:
            with system_scope("find the tenant by its slug"):
                tenant = tenant_by_slug(options["tenant"])
            with tenant_scope(tenant.pk):
                if options["rotate"]:
                    made, secret = rotate_secret(endpoint_id=options["rotate"], actor=ACTOR)
                else:
                    made, secret = create_endpoint(
                        tenant_id=tenant.pk, url=options["url"], events=options["events"], actor=ACTOR
                    )
        except AttuneError as error:
            raise CommandError(error.message) from error
        self.stdout.write(secret)
        self.stderr.write(f"Endpoint {made.pk}. Keep the secret: it is not shown again.")
