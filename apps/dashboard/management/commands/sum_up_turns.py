"""Sum up the turns of the last weeks at once, where one does not want to wait for the workers to do it."""

from typing import Any

from django.core.management.base import BaseCommand

from apps.dashboard.rollups.filling import sum_up_due

AT_ONCE = 500


class Command(BaseCommand):
    help = "Sum up the turns of every stretch of time that is over, as the workers do by and by."

    def handle(self, *_args: object, **options: Any) -> None:
        """Sum up until nothing is due, or somebody is changing what is."""
        total = 0
        while done := sum_up_due(limit=AT_ONCE):
            total += done
        if options["verbosity"]:
            self.stdout.write(f"{total} stretches of time are summed up")
