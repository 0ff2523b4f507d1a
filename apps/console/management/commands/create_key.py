"""Create an API key and print it, once."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.accounts.selectors import tenant_by_slug, user_by_email
from apps.keys.models import KeyScope
from apps.keys.services import create_key
from kernel.errors import AttuneError
from kernel.tenancy import system_scope, tenant_scope


class Command(BaseCommand):
    help = "Create a key of a tenant's member. The key is printed once; only its hash is kept."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--tenant", required=True, help="slug of the tenant")
        parser.add_argument("--user", required=True, help="email address of the member it belongs to")
        parser.add_argument("--name", required=True, help="what it is for")
        parser.add_argument("--scopes", nargs="+", choices=KeyScope.values, default=[KeyScope.CHAT.value])

    def handle(self, *_args: object, **options: Any) -> None:
        """Create it and print it alone on standard output."""
        try:
            with system_scope("create a key"):
                tenant = tenant_by_slug(options["tenant"])
                user = user_by_email(options["user"])
            with tenant_scope(tenant.pk):
                _, secret = create_key(
                    tenant=tenant,
                    user=user,
                    name=options["name"],
                    scopes=[KeyScope(scope) for scope in options["scopes"]],
                )
        except AttuneError as error:
            raise CommandError(error.message) from error
        self.stdout.write(secret)
        self.stderr.write("Keep it: it is not shown again.")
