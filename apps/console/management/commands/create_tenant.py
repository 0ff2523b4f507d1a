"""Create a tenant with its owner and its policy `default`."""

import argparse
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from apps.accounts.models import Role, User
from apps.accounts.services import create_tenant, create_user, new_password, set_role
from apps.adapters.services import create_policy
from kernel.errors import AttuneError
from kernel.tenancy import system_scope, tenant_scope

ACTOR = "system:command line"


class Command(BaseCommand):
    help = (
        "Create a tenant with a policy `default`; the owner gets an account and a password if they have none."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("slug", help="lower-case letters, digits and hyphens")
        parser.add_argument("--name", default="", help="as people read it; default: the slug")
        parser.add_argument("--owner-email", required=True)

    def handle(self, *_args: object, **options: Any) -> None:
        """Create all of it, or nothing."""
        password = None
        try:
            with system_scope("create a tenant"), transaction.atomic():
                tenant = create_tenant(slug=options["slug"], name=options["name"], actor=ACTOR)
                email = options["owner_email"].strip().lower()
                owner = User.objects.filter(email=email).first()
                if owner is None:
                    password = new_password()
                    owner = create_user(email=email, password=password, operator=False, actor=ACTOR)
                set_role(tenant_id=tenant.pk, user=owner, role=Role.OWNER, actor=ACTOR)
                with tenant_scope(tenant.pk):
                    create_policy(tenant=tenant, name="default", base_model=settings.BASE_MODEL_NAME)
        except AttuneError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"tenant {tenant.slug}, policy default, owner {owner.email}")
        if password is not None:
            self.stdout.write(f"password {password} (shown once)")
