"""Judge a window of a policy's turns once more, by the rules of now."""

import argparse
import datetime as dt
import json
import time
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from apps.adapters.models import Policy
from apps.judging.models import Rejudging
from apps.judging.services.windows import Progress, progress_of, rejudge_some, rejudge_window
from kernel.errors import AttuneError
from kernel.tenancy import system_scope, tenant_scope

PAUSE_S = 2.0  # while others hold what is left


class Command(BaseCommand):
    help = (
        "Judge a window of a policy's turns once more, by the rubric and the judge of now. Old verdicts stay; the new "
        "ones count for what no training step has taken. Stopped or run again, it goes on where it was."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("policy", help="its name in the tenant, like default")
        parser.add_argument("--tenant", required=True, help="the tenant's slug")
        parser.add_argument(
            "--since", required=True, help="begin of the window, ISO 8601, like 2026-11-01T00:00Z"
        )
        parser.add_argument("--until", help="its end (not included); now where it is left out")
        parser.add_argument(
            "--workers", action="store_true", help="leave it to the judge workers and return at once"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: object, **options: Any) -> None:
        """Ask for the window and judge it, or leave it to the workers."""
        since = _moment(options["since"], "since")
        until = _moment(options["until"], "until") if options["until"] else timezone.now()
        with system_scope("rejudge"):
            policy = Policy.objects.filter(name=options["policy"], tenant__slug=options["tenant"]).first()
        if policy is None:
            raise CommandError(f"there is no policy {options['tenant']}/{options['policy']}")
        with tenant_scope(policy.tenant_id):
            try:
                rejudging = rejudge_window(
                    policy=policy,
                    since=since,
                    until=until,
                    actor="system:rejudge",
                    announce=options["workers"],
                )
            except AttuneError as error:
                raise CommandError(error.message) from error
            if not options["workers"]:
                self._judge(rejudging, quiet=options["json"])
            rejudging.refresh_from_db()
            progress = progress_of(rejudging)
        if options["json"]:
            self.stdout.write(
                json.dumps({"id": str(rejudging.id), "state": rejudging.state, **asdict(progress)})
            )
        else:
            self.stdout.write(f"{rejudging.state}: {_words(progress, options['workers'])}")

    def _judge(self, rejudging: Rejudging, *, quiet: bool) -> None:
        before = -1
        while rejudge_some(rejudging_id=rejudging.id, announce=False):
            progress = progress_of(rejudging)
            if not quiet:
                self.stderr.write(f"{progress.settled + progress.dead} of {progress.total} turns")
            if progress.left == before:
                time.sleep(PAUSE_S)
            before = progress.left


def _words(progress: Progress, by_workers: bool) -> str:  # noqa: FBT001
    how = ", judge workers go on" if by_workers else ""
    return f"{progress.settled} of {progress.total} turns judged, {progress.dead} dead letters{how}"


def _moment(text: str, name: str) -> dt.datetime:
    moment = parse_datetime(text)
    if moment is None:
        raise CommandError(f"--{name} is a moment like 2026-11-01T00:00Z, not {text!r}")
    return moment if timezone.is_aware(moment) else moment.replace(tzinfo=dt.UTC)
