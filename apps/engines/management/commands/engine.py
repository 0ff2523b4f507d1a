"""Add and drain engines while the platform runs."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.engines import registry
from apps.engines.models import Engine, EngineOrder
from kernel.errors import AttuneError
from kernel.tenancy import system_scope

_ORDERS = {"add": EngineOrder.SERVE, "drain": EngineOrder.DRAIN, "auto": None}


class Command(BaseCommand):
    help = "List engines, let one serve (add), let it finish and give it nothing new (drain), or leave it to ENGINE_URLS (auto)."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("act", choices=["list", *_ORDERS])
        parser.add_argument("url", nargs="?", default="", help="the engine's address")

    def handle(self, *_args: object, **options: Any) -> None:
        """Do it, or say why not."""
        with system_scope("an operator's command"):
            if options["act"] != "list":
                try:
                    registry.order(
                        url=options["url"], order=_ORDERS[options["act"]], actor="system:command line"
                    )
                except AttuneError as error:
                    raise CommandError(error.message) from error
            for engine in Engine.objects.order_by("url"):
                said = [engine.url, engine.state, engine.ordered, engine.reason]
                self.stdout.write("  ".join(word for word in said if word))
