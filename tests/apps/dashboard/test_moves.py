"""Which marks the overview's chart has of versions that became live."""

import datetime as dt

import pytest
from django.utils import timezone

from apps.adapters.models import PointerMove
from apps.dashboard import metrics
from apps.dashboard.metrics import MOST_MOVES, RANGES, moves
from apps.dashboard.rollups.stretches import begin
from kernel.tenancy import tenant_scope
from tests.tenants import Somebody, add_somebody, add_version

NOW = timezone.now()


def moved(somebody: Somebody, *minutes_ago: float) -> None:
    """Move the pointer to version 1 and back to the base in turn, at these times."""
    with tenant_scope(somebody.tenant.pk):
        version = add_version(somebody.policy, 1)
        for place, minutes in enumerate(minutes_ago):
            row = PointerMove.objects.create(
                policy=somebody.policy, to_version=None if place % 2 else version, actor="user:1", reason=""
            )
            PointerMove.objects.filter(pk=row.pk).update(created_at=NOW - dt.timedelta(minutes=minutes))


@pytest.mark.django_db
@pytest.mark.parametrize("span", RANGES)
def test_of_many_moves_each_point_has_its_last(span: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(hours * 60 / minutes for hours, minutes in RANGES.values()) <= MOST_MOVES
    hours, minutes = RANGES[span]
    somebody, other = add_somebody(), add_somebody("globex")
    # of nine in a row the 2nd and 3rd are in one point or in two;
    # one was before the range, one is said to be to come
    ago = [hours * 60 + 31, *(1 + place * minutes * 0.4 for place in range(9)), hours * 60 - 1, -5]
    moved(somebody, *ago)
    moved(other, 2.0, 3.0)
    within = {
        NOW - dt.timedelta(minutes=one): 1 - place % 2
        for place, one in enumerate(ago)
        if 0 < one <= hours * 60
    }
    with tenant_scope(somebody.tenant.pk):
        whole = moves(somebody.tenant.pk, span, NOW)
        monkeypatch.setattr(metrics, "MOST_MOVES", 10)
        last = {begin(at, minutes): at for at in sorted(within)}
        for most, wanted in ((len(within), sorted(within)), (len(within) - 1, sorted(last.values()))):
            monkeypatch.setattr(metrics, "MOST_MOVES", most)
            assert moves(somebody.tenant.pk, span, NOW) == [
                {"t": at.timestamp(), "version": within[at], "policy": "default"} for at in wanted
            ]
    assert len(whole) == len(within) == 10
    assert len(last) < len(within)
