"""What is kept of turns says what the turns say, however much of it there is,
and is made by bounded steps."""

import datetime as dt
import math
import random
from itertools import pairwise
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.adapters.models import Policy
from apps.conversations.models import Turn, TurnKind
from apps.dashboard.metrics import RANGES, traffic
from apps.dashboard.models import TurnRollup
from apps.dashboard.rollups import filling
from apps.dashboard.rollups.filling import KEPT, sum_up, sum_up_due
from apps.dashboard.rollups.histogram import ERROR, GAMMA, LEAST_MS, MOST_MS, Histogram, bucket_sql
from apps.dashboard.rollups.stretches import LEVELS, ORIGIN, Stretch, begin, stretch, without
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.dashboard.turns_in_time import put, same, scatter
from tests.tenants import Somebody, add_somebody
from workers import upkeep
from workers.app import app

NOW = timezone.now()


@pytest.fixture
def somebody(db: None) -> Somebody:
    del db
    return add_somebody()


def kept(somebody: Somebody) -> dict[int, int]:
    """Return how many stretches of each level are kept."""
    with tenant_scope(somebody.tenant.pk):
        levels = list(TurnRollup.objects.filter(of_policy=None).values_list("minutes", flat=True))
    return {minutes: levels.count(minutes) for minutes in LEVELS}


def fill() -> int:
    total = 0
    while done := sum_up_due(limit=100):
        total += done
    return total


def test_each_point_of_a_chart_is_a_level() -> None:
    assert tuple(sorted(minutes for _, minutes in RANGES.values())) == LEVELS
    assert max(hours for hours, _ in RANGES.values()) * dt.timedelta(hours=1) == KEPT
    assert all(larger % smaller == 0 for smaller, larger in pairwise(LEVELS))


def test_the_page_says_what_the_turns_say_whatever_is_kept(somebody: Somebody) -> None:
    other = add_somebody("globex")
    scatter(somebody, 1200, seed=1)
    scatter(other, 300, seed=2)
    before = {span: same(somebody.tenant.pk, span, NOW) for span in RANGES}
    assert before["30d"].requests > before["7d"].requests > before["1d"].requests > 10
    assert sum_up_due(limit=250) == 250
    for span in RANGES:
        assert same(somebody.tenant.pk, span, NOW).requests == before[span].requests
    assert fill() > 250
    for span in RANGES:
        for back in (0, 7, 29, 31, 600):
            same(somebody.tenant.pk, span, NOW - dt.timedelta(minutes=back))
            same(other.tenant.pk, span, NOW - dt.timedelta(minutes=back))


def test_a_policys_part_is_what_its_turns_say_whatever_is_kept(somebody: Somebody) -> None:
    with tenant_scope(somebody.tenant.pk):
        coder, idle = (Policy.objects.create(name=name, base_model="tiny") for name in ("coder", "idle"))
        scatter(somebody, 700)
        Turn.objects.filter(policy=idle).delete()
        added = scatter(somebody, 1)
        Turn.objects.filter(pk__in=added).update(policy=idle, kind=TurnKind.LIVE)
    put(dict.fromkeys(added, NOW - dt.timedelta(days=2)))
    tenant = somebody.tenant.pk
    policies = (somebody.policy.pk, coder.pk, idle.pk)

    def asked() -> list[int]:
        return [same(tenant, "30d", NOW, policy).requests for policy in policies]

    before = asked()
    assert sum(before) == same(tenant, "30d", NOW).requests
    assert before[2] == 1
    for limit in (150, 5000):
        assert sum_up_due(limit=limit) > 100
        assert asked() == before
        for span in ("1d", "7d"):
            for policy in policies:
                same(tenant, span, NOW, policy)
    with tenant_scope(tenant):
        # nobody reads the turns of what is kept, and who has none there has no row
        assert TurnRollup.objects.filter(of_policy=idle.pk).count() == len(LEVELS)
        TurnRollup.objects.filter(of_policy=idle.pk).delete()
        assert traffic(tenant, "30d", NOW, idle.pk).requests == 0
        # a turn that goes to another policy takes its sums along
        sum_up_due(limit=5000)
        Turn.objects.filter(pk__in=added).update(policy=coder)
    assert asked() == [before[0], before[1] + 1, 0]


def test_the_turns_of_what_is_kept_are_not_read(somebody: Somebody) -> None:
    scatter(somebody, 400)
    fill()
    with system_scope("tests"):
        # a figure that no turn has: only who reads what is kept can say it
        TurnRollup.objects.filter(minutes=720).delete()
    with tenant_scope(somebody.tenant.pk):
        aligned = Stretch(begin(NOW - dt.timedelta(days=9), 720), begin(NOW - dt.timedelta(days=8.5), 720))
        TurnRollup.objects.filter(begins_at__gte=aligned.since, begins_at__lt=aligned.until).delete()
        TurnRollup.objects.create(
            begins_at=aligned.since, minutes=720, requests=10**6, failed=0, prompt_tokens=0, reply_tokens=0,
            first_token_ms=[], latency_ms=[], reward=0.0, rewarded=0,
        )  # fmt: skip
        assert traffic(somebody.tenant.pk, "30d", NOW).requests >= 10**6
        assert traffic(somebody.tenant.pk, "7d", NOW).requests < 10**6
        # the largest that lies within the range, which has whole half-hours: at its very beginning a smaller one
        begins = aligned.since + dt.timedelta(hours=24 * 30)
        assert traffic(somebody.tenant.pk, "30d", begins).requests >= 10**6
        assert traffic(somebody.tenant.pk, "30d", begins + dt.timedelta(minutes=29)).requests >= 10**6
        assert traffic(somebody.tenant.pk, "30d", begins + dt.timedelta(minutes=30)).requests < 10**6


def test_a_page_costs_as_many_queries_whatever_is_kept(somebody: Somebody) -> None:
    counts, policy = set(), somebody.policy.pk
    scatter(somebody, 60)
    for limit in (0, 20, 1000):
        sum_up_due(limit=limit)
        with tenant_scope(somebody.tenant.pk), CaptureQueriesContext(connection) as seen:
            traffic(somebody.tenant.pk, "30d", NOW)
            traffic(somebody.tenant.pk, "30d", NOW, policy)
        counts.add(len([one for one in seen if "set_config" not in one["sql"]]))
    assert counts == {2 * 5}


def test_stretches_are_summed_up_once_newest_first_and_small_ones_before_those_that_they_are_in(
    somebody: Somebody, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = scatter(somebody, 4)
    now = ORIGIN + dt.timedelta(days=2500, hours=13, minutes=31)
    monkeypatch.setattr(filling.timezone, "now", lambda: now)
    day = now.replace(hour=0, minute=0)
    moments = [day + dt.timedelta(hours=12, minutes=10), day + dt.timedelta(hours=12, minutes=20),
               day + dt.timedelta(hours=9), day + dt.timedelta(hours=11, minutes=59, seconds=59)]  # fmt: skip
    put(dict(zip(turns, moments, strict=True)))

    def named() -> list[str]:
        with tenant_scope(somebody.tenant.pk):
            rows = (
                TurnRollup.objects.filter(of_policy=None).order_by("pk").values_list("begins_at", "minutes")
            )
            return [f"{begins:%H:%M} {minutes}" for begins, minutes in rows]

    wanted = ["12:00 30", "11:30 30", "09:00 30", "09:00 180", "00:00 720"]
    for done in range(1, 6):
        assert sum_up_due(limit=1) == 1
        assert named() == wanted[:done]
    assert sum_up_due(limit=100) == 0
    assert sum_up(somebody.tenant.pk, day, 720)  # a message that comes twice
    assert named() == wanted


def test_what_is_not_over_is_not_summed_up(somebody: Somebody, monkeypatch: pytest.MonkeyPatch) -> None:
    (turn,) = scatter(somebody, 1)
    end = begin(NOW, 30)
    put({turn: end - dt.timedelta(seconds=1)})
    monkeypatch.setattr(filling.timezone, "now", lambda: end + dt.timedelta(minutes=4, seconds=59))
    assert sum_up_due(limit=100) == 0
    monkeypatch.setattr(filling.timezone, "now", lambda: end + dt.timedelta(minutes=5))
    assert sum_up_due(limit=1) == 1


def test_a_larger_stretch_waits_for_the_smaller_ones_in_it(somebody: Somebody) -> None:
    (turn,) = scatter(somebody, 1)
    day = begin(NOW - dt.timedelta(days=3), 720)
    put({turn: day})
    tenant = somebody.tenant.pk
    assert [sum_up(tenant, day, minutes) for minutes in (720, 180, 30, 720, 180, 720)] == [
        *(False, False, True, False, True, True)
    ]


def test_no_tenant_waits_until_another_is_done(db: None) -> None:
    tenants = [add_somebody(slug) for slug in ("acme", "globex", "initech")]
    for number, one in enumerate(tenants):
        scatter(one, 60, seed=number)
    assert sum_up_due(limit=31) == 31
    assert sorted(sum(kept(one).values()) for one in tenants) == [10, 10, 11]


def test_what_is_older_than_the_page_looks_back_is_forgotten(somebody: Somebody) -> None:
    scatter(somebody, 100)
    fill()
    with system_scope("tests"):
        oldest = TurnRollup.objects.earliest("begins_at").begins_at
        assert oldest >= begin(timezone.now() - KEPT, 720)
        figures = dict.fromkeys(("requests", "failed", "prompt_tokens", "reply_tokens", "rewarded"), 0)
        old = TurnRollup.objects.create(
            tenant=somebody.tenant, begins_at=begin(NOW - dt.timedelta(days=31), 30), minutes=30, **figures,
            first_token_ms=[], latency_ms=[], reward=0.0,
        )  # fmt: skip
        assert sum_up_due(limit=1) == 0
        assert not TurnRollup.objects.filter(pk=old.pk).exists()


def test_the_workers_and_the_command_sum_up(somebody: Somebody, capsys: pytest.CaptureFixture[str]) -> None:
    turns = scatter(somebody, 30)
    upkeep.sum_up_turns()
    assert kept(somebody)[720] > 10
    assert app.conf.beat_schedule["sum_up_turns"]["task"] == "workers.upkeep.sum_up_turns"
    put(dict.fromkeys(turns, begin(NOW, 720) - dt.timedelta(days=2, seconds=1)))
    call_command("sum_up_turns")
    assert capsys.readouterr().out == "3 stretches of time are summed up\n"


FIGURES: dict[str, Any] = {
    "requests": 1, "failed": 0, "prompt_tokens": 0, "reply_tokens": 0, "first_token_ms": [], "latency_ms": [],
    "reward": 0.0, "rewarded": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"begins_at": ORIGIN + dt.timedelta(minutes=1)}, "rollup_begins_with_its_level"),
        ({"begins_at": ORIGIN + dt.timedelta(minutes=30), "minutes": 180}, "rollup_begins_with_its_level"),
        ({"begins_at": begin(NOW, 30) + dt.timedelta(days=1)}, "rollup_is_over"),
        ({"minutes": 60}, "rollup_level_known"),
        ({"failed": 2}, "rollup_failed_of_requests"),
        ({"requests": -1}, "requests_check"),
        ({"begins_at": ORIGIN}, "rollup_once_per_stretch"),
        ({"first_token_ms": {"7": 1}}, "rollup_counts_by_bucket"),
        ({"latency_ms": 7}, "rollup_counts_by_bucket"),
    ],
)
def test_postgres_refuses_what_no_stretch_sums_up_to(
    somebody: Somebody, wrong: dict[str, Any], name: str
) -> None:
    with tenant_scope(somebody.tenant.pk):
        TurnRollup.objects.create(begins_at=ORIGIN, minutes=30, **FIGURES)
        right = {"begins_at": ORIGIN + dt.timedelta(hours=24), "minutes": 30, **FIGURES}
        with pytest.raises(IntegrityError, match=name), transaction.atomic():
            TurnRollup.objects.create(**right | wrong)
        row = TurnRollup.objects.create(**right)
        with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
            TurnRollup.objects.filter(pk=row.pk).update(requests=2)


def test_what_is_taken_from_stretches_leaves_the_rest() -> None:
    def at(*hours: int) -> list[Stretch]:
        moments = [ORIGIN + dt.timedelta(hours=hour) for hour in hours]
        return [Stretch(*pair) for pair in zip(moments[::2], moments[1::2], strict=True)]

    whole = at(0, 10, 20, 30)
    assert without(whole, []) == whole
    assert without(whole, whole) == []
    assert without(whole, at(0, 1, 1, 2, 5, 6, 9, 10, 29, 30)) == at(2, 5, 6, 9, 20, 29)
    assert without(at(0, 10), at(3, 4)) == at(0, 3, 4, 10)
    assert without([], []) == []
    assert stretch(ORIGIN, 180) == at(0, 3)[0]
    assert begin(ORIGIN + dt.timedelta(minutes=359), 180) == ORIGIN + dt.timedelta(hours=3)
    assert begin(ORIGIN - dt.timedelta(microseconds=1), 30) == ORIGIN - dt.timedelta(minutes=30)


def bucketed(durations: list[float | None]) -> list[int | None]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {bucket_sql('ms')} FROM unnest(%s::float8[]) WITH ORDINALITY AS one (ms, place)"  # noqa: S608
            " ORDER BY place",
            [durations],
        )
        return [bucket for (bucket,) in cursor.fetchall()]


def counted(durations: list[float]) -> Histogram:
    histogram = Histogram()
    for bucket in bucketed(list(durations)):
        histogram.add(Histogram.counted({str(bucket): 1}))
    return histogram


def exact(durations: list[float], share: float) -> float:
    """As `percentile_cont`."""
    rising, place = sorted(durations), share * (len(durations) - 1)
    low, high = rising[math.floor(place)], rising[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(6))
def test_a_percentile_is_within_its_bound(seed: int) -> None:
    draw = random.Random(seed)
    shapes = [
        lambda: draw.lognormvariate(6, 2),
        lambda: draw.uniform(LEAST_MS, 10),
        lambda: draw.choice([1.0, 1.0, 1e9]),
        lambda: GAMMA ** draw.randrange(-200, 200),  # the edges of buckets
    ]
    for shape in shapes:
        durations = [min(MOST_MS, max(LEAST_MS, shape())) for _ in range(draw.choice([1, 2, 3, 500]))]
        shares = (0.0, 0.5, 0.95, 1.0, draw.random())
        for share, found in zip(shares, counted(durations).percentiles(*shares), strict=True):
            wanted = exact(durations, share)
            assert found is not None
            assert abs(found - wanted) <= ERROR * wanted * (1 + 1e-9)


@pytest.mark.django_db
def test_a_duration_that_is_none_or_no_number_breaks_nothing() -> None:
    least, most = bucketed([LEAST_MS, MOST_MS])
    assert bucketed([None, 0.0, -5.0, -math.inf, math.inf, math.nan, 1e300]) == [
        *(None, least, least, least, most, most, most)
    ]
    assert bucketed([1.0, GAMMA]) in ([0, 1], [0, 2])  # a logarithm is rounded
    assert Histogram().percentiles(0.5, 0.95) == (None, None)


def test_a_histogram_is_written_and_read_and_added_whatever_its_buckets() -> None:
    def of(**counts: int) -> Histogram:
        return Histogram.counted(
            {name.replace("m", "-").lstrip("b"): count for name, count in counts.items()}
        )

    assert of().written == []
    assert of(b7=3).written == [7, 3]
    assert of(b2=1, bm1=4).written == [-1, 4, 0, 0, 1]
    total = Histogram()
    for one, wanted in (
        (of(), []),
        (of(b2=1), [2, 1]),
        (of(), [2, 1]),
        (of(b4=2), [2, 1, 0, 2]),
        (of(bm1=5, b3=1), [-1, 5, 0, 0, 1, 1, 2]),
        (of(b0=1), [-1, 5, 1, 0, 1, 1, 2]),
    ):
        before = one.written
        total.add(one)
        assert (total.written, one.written) == (wanted, before)
        assert Histogram.read(total.written) == total
