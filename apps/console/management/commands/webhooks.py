"""Webhook endpoints from the command line:
list them, make one, give one another secret, try it, remove it."""

import argparse
import json
import uuid
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.accounts.selectors import tenant_by_slug
from apps.alerts import endpoints
from apps.alerts.addresses import shown
from apps.alerts.models import TOLD_OF, WebhookEndpoint
from kernel.errors import AttuneError, NotFound
from kernel.tenancy import system_scope, tenant_scope

ACTOR = "system:command line"
_EVENTS = [event.value for event in TOLD_OF]


class Command(BaseCommand):
    help = "List webhook endpoints, make one, give one another secret, send one a test, or remove one. All but the list is audited."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the acts and their options."""
        acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")

        def act(name: str, words: str) -> argparse.ArgumentParser:
            return acts.add_parser(name, help=words, description=words)

        listing = act(
            "list", "print the endpoints, oldest first, by host: the rest of an address may be a secret"
        )
        listing.add_argument("--tenant", help="one tenant's slug; all of them where it is left out")
        listing.add_argument("--json", action="store_true", help="print one JSON array")
        adding = act("add", "tell an address of chosen events; prints the signing secret, once")
        adding.add_argument("url", help="https://…")
        adding.add_argument("--tenant", required=True, help="the tenant's slug")
        adding.add_argument("--events", nargs="+", choices=_EVENTS, default=_EVENTS, help="default: all")
        for name, words in (
            ("rotate", "give an endpoint another signing secret and print it, once; both sign for a day"),
            ("test", "send an endpoint a test, which goes the way of every alert"),
            ("remove", "delete an endpoint and what is on its way to it; the alerts stay"),
        ):
            act(name, words).add_argument("id", type=uuid.UUID, help="as `webhooks list` prints it")

    def handle(self, *_args: object, **options: Any) -> None:
        """Do it, or say why not."""
        acts: dict[str, Callable[[dict[str, Any]], None]] = {"list": self._list, "add": self._add}
        try:
            acts.get(options["act"], self._change)(options)
        except AttuneError as error:
            raise CommandError(f"{error.message[:1].upper()}{error.message[1:]}.") from error

    def _list(self, options: dict[str, Any]) -> None:
        with system_scope("an operator lists webhook endpoints"):
            rows = WebhookEndpoint.objects.select_related("tenant").order_by(
                "tenant__slug", "created_at", "id"
            )
            if options["tenant"]:
                rows = rows.filter(tenant=tenant_by_slug(options["tenant"]))
            found = list(rows)
        if options["json"]:
            self.stdout.write(json.dumps([_plain(row) for row in found], indent=2))
            return
        if not found:
            self.stdout.write("There are no webhook endpoints.")
            return
        lines = [
            (str(row.pk), row.tenant.slug, shown(row.url), _state(row), " ".join(row.events)) for row in found
        ]
        lines.insert(0, ("id", "tenant", "host", "state", "told of"))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            self.stdout.write("  ".join(map(str.ljust, line, widths)).rstrip())

    def _add(self, options: dict[str, Any]) -> None:
        with system_scope("find the tenant by its slug"):
            tenant = tenant_by_slug(options["tenant"])
        with tenant_scope(tenant.pk):
            made, secret = endpoints.create_endpoint(
                tenant_id=tenant.pk, url=options["url"], events=options["events"], actor=ACTOR
            )
        self._secret(made, secret)

    def _change(self, options: dict[str, Any]) -> None:
        with system_scope("find an endpoint by its id"):
            row = WebhookEndpoint.objects.select_related("tenant").filter(pk=options["id"]).first()
        if row is None:
            raise NotFound(f"there is no webhook endpoint {options['id']}: `webhooks list` prints all")
        named = f"{shown(row.url)} of {row.tenant.slug} ({row.pk})"
        with tenant_scope(row.tenant_id):
            if options["act"] == "rotate":
                self._secret(*endpoints.rotate_secret(endpoint_id=row.pk, actor=ACTOR))
            elif options["act"] == "test":
                delivery = endpoints.send_test(endpoint_id=row.pk, actor=ACTOR)
                self.stdout.write(f"A test is on its way to {named}: delivery {delivery.pk}.")
            else:
                endpoints.delete_endpoint(endpoint_id=row.pk, actor=ACTOR)
                self.stdout.write(f"Removed: {named}.")

    def _secret(self, made: WebhookEndpoint, secret: str) -> None:
        """Print a secret alone on standard output."""
        self.stdout.write(secret)
        self.stderr.write(f"Endpoint {made.pk}. Keep the secret: it is not shown again.")


def _state(row: WebhookEndpoint) -> str:
    if not row.enabled:
        # people wrote it: no word of theirs steers the terminal
        return f"off: {''.join(filter(str.isprintable, row.disabled_reason))}"
    return f"failing since {row.failing_since:%Y-%m-%d %H:%MZ}" if row.failing_since else "on"


def _plain(row: WebhookEndpoint) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "tenant": row.tenant.slug,
        "host": shown(row.url),
        "events": row.events,
        "enabled": row.enabled,
        "disabled_reason": row.disabled_reason,
        "failing_since": row.failing_since.isoformat() if row.failing_since else None,
        "created_at": row.created_at.isoformat(),
    }
