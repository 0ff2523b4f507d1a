"""How time is cut up: every stretch of a level begins where one of the next smaller level does."""

import datetime as dt
from collections.abc import Iterable
from typing import NamedTuple

ORIGIN = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
LEVELS = (30, 180, 720)
"""Minutes of a stretch, each a whole number of the one before. The smallest is what a change throws away."""


class Stretch(NamedTuple):
    """From `since` until just before `until`."""

    since: dt.datetime
    until: dt.datetime


def begin(moment: dt.datetime, minutes: int) -> dt.datetime:
    """Return when the stretch of `minutes` began that has the moment in it."""
    return moment - (moment - ORIGIN) % dt.timedelta(minutes=minutes)


def stretch(begins: dt.datetime, minutes: int) -> Stretch:
    """Return the stretch of `minutes` that begins then."""
    return Stretch(begins, begins + dt.timedelta(minutes=minutes))


def without(stretches: Iterable[Stretch], taken: Iterable[Stretch]) -> list[Stretch]:
    """Return what is left of stretches in order of time.

    `taken`, in the same order, lie within them and apart.
    """
    left = []
    rest = sorted(taken)
    for since, until in stretches:
        while rest and rest[0].since < until:
            gone = rest.pop(0)
            if since < gone.since:
                left.append(Stretch(since, gone.since))
            since = gone.until  # noqa: PLW2901  # what comes before is dealt with
        if since < until:
            left.append(Stretch(since, until))
    return left
