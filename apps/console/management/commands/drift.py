"""Show how far a policy has drifted: every measure with its bound, as a table, as JSON or as a plot."""

import argparse
import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from apps.accounts.selectors import tenant_by_slug
from apps.adapters.models import Policy
from apps.learning.drift.deploy import WEEK
from apps.learning.drift.models import Gauge
from apps.learning.drift.pauses import why_paused
from apps.learning.drift.readings import when_first
from apps.learning.drift.selection import inverse_propensity
from apps.learning.drift.selectors import Series, crossings, series
from kernel.errors import AttuneError
from kernel.tenancy import system_scope, tenant_scope


class Command(BaseCommand):
    help = "Print the three drift gauges of a policy with their bounds and what crossings did."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--tenant", required=True, help="slug of the tenant")
        parser.add_argument("--policy", required=True, help="name of the policy")
        parser.add_argument("--json", action="store_true", help="print every reading as JSON")
        parser.add_argument(
            "--weights",
            action="store_true",
            help="print, as JSON, a weight for each sample of the last seven days: what the filters let through then "
            "stands for all turns of its kind",
        )
        parser.add_argument(
            "--plot", type=Path, metavar="FILE", help="draw the measures over time into a PNG"
        )

    def handle(self, *_args: object, **options: Any) -> None:
        """Read and show."""
        try:
            with system_scope("find the tenant by its slug"):
                tenant = tenant_by_slug(options["tenant"])
        except AttuneError as error:
            raise CommandError(error.message) from error
        with tenant_scope(tenant.pk):
            policy = Policy.objects.filter(name=options["policy"]).first()
            if policy is None:
                raise CommandError(f"{tenant.slug} has no policy {options['policy']}")
            if options["weights"]:
                self.stdout.write(json.dumps(_weights(policy), indent=2))
                return
            found = series(policy.pk)
            happened: list[dict[str, Any]] = [
                {
                    "at": one.created_at.isoformat(),
                    "measure": one.measure,
                    "value": one.value,
                    "bound": one.bound,
                    "action": one.action,
                    "words": one.words,
                    "done": one.done,
                    "over": one.cleared_by,
                }
                for one in crossings(policy.pk)
            ]
            paused = why_paused(policy.pk)
        nothing = "" if found else f"No readings yet. {when_first()}"
        if options["plot"]:
            if nothing:
                raise CommandError(f"There is nothing to draw. {nothing}")
            plot(found, options["plot"], title=f"{tenant.slug} / {policy.name}")
        if options["json"]:
            said = {
                "policy": policy.name,
                "paused": paused,
                "measures": _plain(found),
                "crossings": happened,
                "no_readings": nothing,
            }
            self.stdout.write(json.dumps(said, indent=2))
            return
        if nothing:
            self.stdout.write(nothing)
        for one in found:
            last = one.last
            if last is None:
                continue
            limit = "off" if last.limit is None else f"{one.bound.side} {last.limit:g}: {one.action}"
            mark = "!" if one.past else " "
            self.stdout.write(
                f"{mark} {one.bound.gauge:<16} {one.bound.measure:<32} {last.value:>10.4g} {one.bound.unit:<20} {limit}"
            )
        read = {one.bound.gauge for one in found}
        unread = ", ".join(gauge.value for gauge in Gauge if gauge not in read)
        if found and unread:
            self.stdout.write(f"No data yet: {unread}.")
        for row in happened:
            self.stdout.write(f"{row['at'][:19]} {row['words']}. {row['done']}")
        self.stdout.write(f"Training is paused: {paused}" if paused else "Training is not paused.")


def _weights(policy: Policy) -> dict[str, Any]:
    until = timezone.now()
    found = inverse_propensity(policy, since=until - WEEK, until=until)
    return {
        "unreachable": found.unreachable,
        "ess": found.ess,
        "samples": {str(sample_id): weight for sample_id, weight in found.by_sample.items()},
    }


def plot(found: list[Series], file: Path, *, title: str) -> None:
    """Draw each measure over its readings with the bound that held, one small plot each."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    columns = 4
    rows = max(1, -(-len(found) // columns))
    figure, axes = plt.subplots(rows, columns, figsize=(14, 2.1 * rows), squeeze=False)
    for axis in axes.flat[len(found) :]:
        axis.set_axis_off()
    colours = dict(zip(Gauge.values, ("#1f7a8c", "#8a5a00", "#5b4b8a"), strict=True))
    for axis, one in zip(axes.flat, found, strict=False):
        values = [point.value for point in one.points]
        axis.plot(
            values, color=colours[one.bound.gauge], marker="." if len(values) < 40 else "", linewidth=1.2
        )
        limits = [point.limit for point in one.points]
        if any(limit is not None for limit in limits):
            axis.plot(
                [float("nan") if x is None else x for x in limits],
                color="#b3261e",
                linestyle="--",
                linewidth=1,
            )
        axis.set_title(f"{one.bound.measure}", fontsize=8)
        axis.tick_params(labelsize=7)
    figure.suptitle(f"{title}: readings in order; dashed: the bound", fontsize=10)
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=90)
    plt.close(figure)


def _plain(found: list[Series]) -> dict[str, Any]:
    return {
        one.bound.measure: {
            "gauge": one.bound.gauge,
            "unit": one.bound.unit,
            "side": one.bound.side,
            "action": one.action,
            "past": one.past,
            "readings": [
                {
                    "at": point.at.isoformat(),
                    "value": point.value,
                    "bound": point.limit,
                    "run": str(point.run_id) if point.run_id else None,
                }
                for point in one.points
            ],
        }
        for one in found
    }
