"""Two versions, and two runs, side by side."""

import datetime as dt
import json
import re
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.models import Role
from apps.adapters.models import AdapterVersion, GateResult, Policy, VersionState
from apps.conversations.models import Session, Turn, TurnKind, TurnState
from apps.dashboard.compare import served
from apps.dashboard.compare.learned import Learned, learned_lines
from apps.dashboard.compare.rows import Line, differences, measured
from apps.dashboard.compare.served import served_by
from apps.dashboard.compare.versions import lineage_of
from apps.dashboard.curves import drawn
from apps.learning.models import RunState, Sample, TrainingRun
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import NASTY, Rows, fill
from tests.apps.dashboard.conftest import browser, member, text_of

VERSIONS, RUNS = "/t/acme/adapters/compare", "/t/acme/runs/compare"


def version(policy: Policy, number: int, parent: AdapterVersion | None, **metrics: Any) -> AdapterVersion:
    """Make a version and the run that made it."""
    run_id, sha256 = uuid.uuid4(), uuid.uuid4().hex * 2
    made = AdapterVersion.objects.create(
        tenant_id=policy.tenant_id,
        policy=policy,
        number=number,
        parent=parent,
        depth=parent.depth + 1 if parent else 1,
        served_name=f"p{policy.pk.hex[-8:]}-v{number}-{sha256[:8]}",
        sha256=sha256,
        path=f"{policy.tenant_id}/{policy.pk}/{number}",
        rank=16,
        alpha=32,
        state=VersionState.READY,
        run_id=run_id,
    )
    now = timezone.now()
    TrainingRun.objects.create(
        id=run_id,
        tenant_id=policy.tenant_id,
        policy=policy,
        state=RunState.SUCCEEDED,
        trigger="threshold",
        parent=parent,
        version=made,
        config={"lr": 1e-4, "batch_size": 16, "method": "combined"},
        config_number=1,
        metrics=metrics,
        trainer_s=21.5,
        started_at=now,
        finished_at=now + dt.timedelta(seconds=30),
    )
    return made


def answer(made: AdapterVersion, rows: Rows, reward: float, *, session: Session | None = None) -> None:
    """Let a version answer in a session of its own, and be judged."""
    talk = session or Session.objects.create(tenant=rows.tenant, user=rows.user, policy=made.policy)
    turn = Turn.objects.create(
        tenant=rows.tenant,
        session=talk,
        policy=made.policy,
        version=made,
        state=TurnState.COMPLETE,
        messages=[],
        reply={"role": "assistant", "content": "yes"},
        request_hash="0" * 64,
        body_sha256="0" * 64,
        usage={"prompt_tokens": 40, "completion_tokens": 10},
        first_token_ms=400.0,
        latency_ms=2000.0,
        completed_at=timezone.now(),
    )
    Sample.objects.create(
        tenant=rows.tenant, policy=made.policy, turn=turn, source="live", reward=reward, version=made
    )


@pytest.fixture
def two(acme: Rows) -> tuple[AdapterVersion, AdapterVersion]:
    """Return two versions of a policy of acme's, one step apart."""
    with system_scope("test rows"):
        policy = Policy.objects.create(tenant=acme.tenant, name="taught", base_model="tiny")
        one = version(policy, 1, None, loss=1.25, reward_mean=-0.5, staleness={"0": 3, "1": 1})
        other = version(policy, 2, one, loss=0.75, reward_mean=0.25, seconds={"learn": 8.5, "total": 9.0})
        return one, other


def address(page: str, name: str, *ids: Any) -> str:
    return f"{page}?{'&'.join(f'{name}={one}' for one in ids)}"


def run_of(made: AdapterVersion) -> uuid.UUID:
    with system_scope("look"):
        return TrainingRun.objects.get(version=made).pk


def test_two_versions_are_told_side_by_side(acme: Rows) -> None:
    seen = text_of(browser(acme.user), address(VERSIONS, "version", acme.older.pk, acme.version.pk))
    for words in (
        "default: version 1 beside version 2",
        "Version 2 is one step on from version 1.",
        "State ready live",
        "Step from the bare base version 1",
        "probe not looked at passed nats 0.01",
        "Requests 0 2",
        "Mean reward - \u22121",
        "Tokens written a reply - 4",
        "To the first token, median - 0.04 s",
        "What one of them answered has not been judged yet.",
        "It is not known for both which configuration they were trained with.",
        "The runs that made them are not both here.",
        "Loss - 0.5",
    ):
        assert words in seen, (words, seen)


def test_the_older_one_comes_first_however_it_was_asked(two: Sequence[AdapterVersion], acme: Rows) -> None:
    client, (one, other) = browser(acme.user), two
    for ids in ((one.pk, other.pk), (other.pk, one.pk)):
        assert "taught: version 1 beside version 2" in text_of(client, address(VERSIONS, "version", *ids))


def test_only_what_differs_of_the_configurations_is_shown(two: Sequence[AdapterVersion], acme: Rows) -> None:
    client, (one, other) = browser(acme.user), two
    at = address(VERSIONS, "version", one.pk, other.pk)
    assert "Nothing: both were trained with the same one." in text_of(client, at)
    with tenant_scope(acme.tenant.pk):
        TrainingRun.objects.filter(version=other).update(
            config={"lr": 5e-5, "batch_size": 16, "method": "combined", "hints": None}
        )
    seen = text_of(client, at)
    assert "What Version 1 Version 2 hints - none lr 0.0001 5e-05" in seen
    assert "batch_size" not in seen
    html = client.get(at).content.decode()
    assert '<td>0.0001</td><td class="differs">5e-05</td>' in html
    assert "Loss 1.25 0.75 \u22120.5" in seen


@pytest.mark.parametrize(
    ("page", "name", "empty"),
    [(VERSIONS, "version", "adapters"), (RUNS, "run", "runs")],
)
def test_what_cannot_be_compared_says_so(
    two: Sequence[AdapterVersion], acme: Rows, page: str, name: str, empty: str
) -> None:
    client, (one, other) = browser(acme.user), two
    first, second = (one.pk, other.pk) if name == "version" else (run_of(one), run_of(other))
    elsewhere = acme.version.pk if name == "version" else acme.run.pk
    for ids, words in (
        ((), "Choose two."),
        (("",), "Choose two."),
        ((first,), "Choose another one beside it."),
        ((first, ""), "Choose another one beside it."),
        ((first, first), f"That is the same {name} twice: nothing differs."),
        ((first, second, elsewhere), "More than two are chosen"),
        ((first, elsewhere), "They are of two policies"),
    ):
        seen = text_of(client, address(page, name, *ids))
        assert words in seen, (ids, seen)
        assert "Configuration: what differs" not in seen
    html = client.get(address(page, name, second)).content.decode()
    assert html.count(f'<option value="{second}" selected>') == 1
    assert str(elsewhere) not in html  # of that policy alone
    assert f'<label>beside <select name="{name}"><option value="">choose</option>' in html
    assert f'href="/t/acme/{empty}"' in html


@pytest.mark.parametrize(("page", "name"), [(VERSIONS, "version"), (RUNS, "run")])
def test_what_is_not_there_is_not_found(acme: Rows, page: str, name: str) -> None:
    other = fill("globex")
    own, foreign = (acme.version.pk, other.version.pk) if name == "version" else (acme.run.pk, other.run.pk)
    client = browser(acme.user)
    for ids in (("x", own), (own, "x"), (foreign,), (own, foreign), (foreign, foreign), (own, uuid.uuid4())):
        assert client.get(address(page, name, *ids)).status_code == 404, ids
    assert Client().get(page).status_code == 302
    for role in Role:  # sums and versions are for everybody
        assert browser(member(acme.tenant, role)).get(address(page, name, own)).status_code == 200
    assert client.post(page).status_code == 405


def test_where_there_are_no_two_the_page_says_what_to_do(acme: Rows) -> None:
    client = browser(acme.user)
    seen = text_of(client, RUNS)
    assert "There was one run so far, and it takes two." in seen
    with tenant_scope(acme.tenant.pk):
        Sample.objects.update(run=None, state="ready", consumed_at=None)
        TrainingRun.objects.all().delete()
    assert "There were no runs yet, and it takes two." in text_of(client, RUNS)


def test_lists_let_two_be_ticked_without_a_script(two: Sequence[AdapterVersion], acme: Rows) -> None:
    del two
    client = browser(acme.user)
    for path, name, action in (("adapters", "version", VERSIONS), ("runs", "run", RUNS)):
        html = client.get(f"/t/acme/{path}").content.decode()
        assert f'<form class="pick" id="compare" method="get" action="{action}">' in html
        boxes = re.findall(
            rf'<input type="checkbox" form="compare" name="{name}" value="([0-9a-f-]{{36}})"', html
        )
        assert client.get(address(action, name, *boxes[:2])).status_code == 200
    with tenant_scope(acme.tenant.pk):
        TrainingRun.objects.exclude(pk=acme.run.pk).delete()
    assert 'form="compare"' not in client.get("/t/acme/runs").content.decode()  # one by itself


def test_rewards_are_compared_with_their_interval(two: Sequence[AdapterVersion], acme: Rows) -> None:
    one, other = two
    with tenant_scope(acme.tenant.pk):
        for _ in range(5):
            answer(one, acme, -1.0)
            answer(other, acme, 1.0)
        both = served_by(acme.tenant.pk, one.pk, other.pk)
        assert (both.one.rewards.mean, both.other.rewards.mean) == (-1.0, 1.0)
        assert both.verdict == "Too little was judged, or all alike, to say whether their rewards differ."
        answer(one, acme, 1.0)
        answer(other, acme, -1.0)
        both = served_by(acme.tenant.pk, one.pk, other.pk)
        difference = both.difference
        assert difference is not None
        # 4/3, each mean sure to 1/3, t(5) 2.5706
        assert (difference.low, difference.high) == pytest.approx((0.1216, 2.5451), abs=2e-3)
        assert both.verdict.startswith("The newer one's mean reward is higher by 0.12")
        back = served_by(acme.tenant.pk, other.pk, one.pk)
        assert back.verdict.startswith("The newer one's mean reward is lower by 0.12")
        assert (both.one.requests, both.one.sessions, both.one.failed) == (6, 6, 0)
        assert both.one.first_token_ms == (400.0, 400.0)
        for _ in range(40):  # in one session: hardly surer
            answer(one, acme, -1.0, session=Session.objects.order_by("created_at").last())
        assert served_by(acme.tenant.pk, one.pk, other.pk).one.rewards.clusters == 7
        for _ in range(6):
            answer(one, acme, 1.0)
            answer(other, acme, -1.0)
        verdict = served_by(acme.tenant.pk, one.pk, other.pk).verdict
    assert verdict.startswith("The rewards show no difference: it lies between ")
    seen = text_of(browser(acme.user), address(VERSIONS, "version", one.pk, other.pk))
    assert verdict.replace("'", "&#x27;") in seen


def test_what_choosing_measured_comes_with_its_interval(two: Sequence[AdapterVersion], acme: Rows) -> None:
    one, other = two
    with tenant_scope(acme.tenant.pk):
        detail = {"passes": 12, "of": 16, "reason": NASTY}
        GateResult.objects.create(version=other, check_name="held-out", passed=True, detail=detail)
    html = browser(acme.user).get(address(VERSIONS, "version", one.pk, other.pk)).content.decode()
    assert "12 of 16 pass (51 to 90 %)" in html
    assert "<script>alert" not in html


def test_how_versions_are_related_is_said(acme: Rows) -> None:
    with system_scope("test rows"):
        policy = Policy.objects.create(tenant=acme.tenant, name="branched", base_model="tiny")
        first = version(policy, 1, None)
        second = version(policy, 2, first)
        third = version(policy, 3, second)
        fourth = version(policy, 4, first)
        fifth = version(policy, 5, None)
        assert lineage_of(first, third) == "Version 3 is 2 steps on from version 1."
        assert lineage_of(third, fourth) == (
            "They part at version 1: version 3 is 2 steps from there, version 4 one step."
        )
        assert lineage_of(third, fifth) == (
            "They part at the bare base: version 3 is 3 steps from there, version 5 one step."
        )


def test_two_runs_are_told_side_by_side(two: Sequence[AdapterVersion], acme: Rows) -> None:
    one, other = two
    at = address(RUNS, "run", run_of(one), run_of(other))
    seen = text_of(browser(acme.user), at)
    for words in (
        "Two runs of taught",
        "Made version 1 version 2",
        "Step from the bare base version 1",
        "Nothing: both used the same one.",
        "Loss 1.25 0.75 \u22120.5",
        "Mean staleness, steps 0.25 -",
        "Worked 30 s 30 s",
        "Of the trainers 21.5 s 21.5 s",
        "Phase learn - 8.5 s",
    ):
        assert words in seen, (words, seen)
    charts = _chart(browser(acme.user), at)
    loss = next(one for one in charts if one["name"] == "loss")
    assert loss["x"] == [1, 2]
    assert loss["lines"] == [
        {"label": "the older run", "values": [1.25, None]},
        {"label": "the newer run", "values": [1.25, 0.75]},
    ]
    assert [one["name"] for one in charts] == [
        *("loss", "reward_mean", "rollout_k3", "ess", "clip_fraction", "staleness_mean"),
    ]


def test_curves_part_where_the_lineages_do_and_a_failed_run_ends_its_own(acme: Rows) -> None:
    with system_scope("test rows"):
        policy = Policy.objects.create(tenant=acme.tenant, name="branched", base_model="tiny")
        first = version(policy, 1, None, loss=4.0)
        second = version(policy, 2, first, loss=3.0)
        third = version(policy, 3, first, loss=2.0)
        failed = TrainingRun.objects.create(
            tenant=acme.tenant,
            policy=policy,
            state=RunState.FAILED,
            trigger="threshold",
            parent=third,
            reason=f"no {NASTY}",
            metrics={"loss": 9.0, "ess": "?", "seconds": 7, "staleness": []},
        )
    at = address(RUNS, "run", run_of(second), failed.pk)
    loss = next(one for one in _chart(browser(acme.user), at) if one["name"] == "loss")
    assert (loss["x"], [line["values"] for line in loss["lines"]]) == (
        [1, 2, 3],
        [[4.0, 3.0, None], [4.0, 2.0, 9.0]],
    )
    html = browser(acme.user).get(at).content.decode()
    assert "One of them has not begun" in html
    assert "<script>alert" not in html
    assert "no version" in html


def _chart(client: Client, at: str) -> Any:
    html = client.get(at).content.decode()
    found = re.search(r'<script id="chart-data" type="application/json">(.*?)</script>', html)
    assert found is not None
    return json.loads(found[1])["pairs"]


def test_pages_run_a_constant_number_of_queries(two: Sequence[AdapterVersion], acme: Rows) -> None:
    client, (one, other) = browser(acme.user), two
    pages = [address(VERSIONS, "version", one.pk, other.pk), address(RUNS, "run", run_of(one), run_of(other))]

    def counts() -> list[int]:
        found = []
        for page in pages:
            client.get(page)
            with CaptureQueriesContext(connection) as seen:
                assert client.get(page).status_code == 200
            found.append(len(seen))
        return found

    before = counts()
    with system_scope("more"):
        at = other
        for number in range(3, 15):
            at = version(one.policy, number, at, loss=1.0)
            answer(one, acme, 1.0)
            answer(other, acme, -1.0)
            GateResult.objects.create(
                tenant=acme.tenant, version=other, check_name=f"check {number}", passed=True
            )
    assert counts() == before
    assert max(before) <= 22, before


def test_sizes_are_those_of_the_files(
    two: Sequence[AdapterVersion], acme: Rows, tmp_path: Any, settings: Any
) -> None:
    settings.ADAPTER_STORE = str(tmp_path)
    one, other = two
    at = address(VERSIONS, "version", one.pk, other.pk)
    assert "Weights" not in text_of(browser(acme.user), at)
    folder = tmp_path / other.path
    folder.mkdir(parents=True)
    (folder / "adapter_model.safetensors").write_bytes(b"x" * 2048)
    assert "Weights - 2.0" in text_of(browser(acme.user), at)


def test_fields_differ_where_they_are_other_or_missing() -> None:
    one, other = {"a": 1, "b": None, "c": 0.5, "same": [1]}, {"a": 2, "c": 0.5, "same": [1], "d": "x" * 300}
    found = differences(one, other)
    assert [(line.label, line.one, line.other[:4], line.differs) for line in found] == [
        ("a", "1", "2", True),
        ("b", "none", "-", True),
        ("d", "-", "xxxx", True),
    ]
    assert len(found[2].other) < 240


def test_numbers_say_by_how_much_they_differ() -> None:
    assert measured("x", 1, 3) == Line("x", "1", "3", "+2")
    assert measured("x", 2000.0, 500.0, scale=0.001, unit="s") == Line("x", "2 s", "0.5 s", "\u22121.5")
    assert measured("x", -0.5, -2.0) == Line("x", "\u22120.5", "\u22122", "\u22121.5")
    assert measured("x", None, 0.5) == Line("x", "-", "0.5")
    assert measured("x", 0.5, 0.5) == Line("x", "0.5", "0.5")


def test_a_step_draws_what_it_measured() -> None:
    assert drawn({"loss": 1, "ess": True, "rollout_k3": "0.1", "staleness": {"0": 1, "2": 3}}) == {
        "loss": 1.0,
        "staleness_mean": 1.5,
    }
    assert drawn({"staleness": {}}) == {}


def test_the_newest_turns_of_each_kind_are_read_and_the_page_says_so(
    two: Sequence[AdapterVersion], acme: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    with system_scope("test rows"):
        for reward in (-1.0, 1.0, 1.0):
            answer(one, acme, reward)
        answer(other, acme, 1.0)
        Turn.objects.filter(version=other).update(kind=TurnKind.ROLLOUT)
        answer(other, acme, -1.0)
        answer(other, acme, -1.0)  # the platform's own, however new
        newest = Turn.objects.filter(version=other).latest("created_at")
        Turn.objects.filter(pk=newest.pk).update(kind=TurnKind.EVALUATION)
    at = address(VERSIONS, "version", one.pk, other.pk)
    seen = text_of(browser(acme.user), at)
    assert "Requests 3 2 Sessions 3 2" in seen
    assert "Turns judged 3 2" in seen
    assert "The newest 10 000 live turns of each, and as many rollouts." in seen
    monkeypatch.setattr(served, "MOST_TURNS", 2)
    with tenant_scope(acme.tenant.pk):
        both = served_by(acme.tenant.pk, one.pk, other.pk)
    assert (both.one.requests, both.one.is_part, both.one.rewards.mean) == (2, True, 1.0)
    assert (both.other.requests, both.other.is_part, both.other.rewards.mean) == (2, False, 0.0)
    seen = text_of(browser(acme.user), at)
    assert "Requests at least 2 2 Sessions at least 2 2" in seen
    assert "Turns judged at least 2 2" in seen


def test_fewer_turns_are_fewer_by_the_same_minus_as_everything_else() -> None:
    one, other = Learned(by_source={"live": 40}), Learned(by_source={"live": 38})
    assert learned_lines(one, other)[0] == Line("Turns", "40 live", "38 live", "\u22122")
    assert learned_lines(other, one)[0] == Line("Turns", "38 live", "40 live", "+2")
