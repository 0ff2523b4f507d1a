"""How far a policy has drifted, what came of it, and who lets it go on."""

import csv
import datetime as dt
import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.models import Role
from apps.adapters.models import Policy
from apps.judging.reasons import Reason
from apps.learning.drift import pauses
from apps.learning.drift.models import Crossing, DriftReading, TrainingPause
from apps.learning.models import Sample, SampleState
from kernel.models import AuditEntry
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.apps.dashboard.conftest import browser, member, text_of

PATH = "/t/acme/drift"


def paused(rows: Rows, reason: str = "k3 is 0.75") -> None:
    with tenant_scope(rows.tenant.pk):
        pauses.pause(policy_id=rows.policy.pk, actor="system:drift", reason=reason)


def charts(page: str) -> list[dict[str, Any]]:
    found = re.search(r'<script id="chart-data" type="application/json">(.*?)</script>', page)
    assert found is not None
    drawn: list[dict[str, Any]] = json.loads(found[1])["drift"]
    return drawn


def week(rows: Rows, **fields: Any) -> DriftReading:
    until = fields.pop("until", timezone.now())
    with tenant_scope(rows.tenant.pk):
        return DriftReading.objects.create(
            policy=rows.policy,
            gauge="learner_deploy",
            since=until - dt.timedelta(days=7),
            until=until,
            **fields,
        )


def test_a_gauge_stands_beside_its_bound(acme: Rows) -> None:
    page = browser(acme.user).get(PATH).content.decode()
    seen = text_of(browser(acme.user), PATH)
    assert "rollout ↔ learner 1 past its bound" in seen
    assert "k3 from engine to learner 0.75 nats a token, not over 0.5: a crossing pauses training" in seen
    assert "the effective sample size 0.9 of the tokens, not under 0.4: a crossing is told of" in seen
    k3, ess = charts(page)
    assert (k3["name"], k3["side"], ess["name"]) == ("rollout_k3", "over", "ess")
    assert [point[1:] for point in k3["points"]] == [[0.75, 0.5]]
    assert page.count('data-chart="') == 2


def test_a_crossing_says_what_was_done(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        Crossing.objects.update(done="Training is paused until somebody resumes it.")
    page = browser(acme.user).get(PATH).content.decode()
    seen = text_of(browser(acme.user), PATH)
    assert "over Training is paused until somebody resumes it." in seen
    assert f'href="/t/acme/runs/{acme.run.pk}"' in page
    assert f'href="/t/acme/adapters/{acme.version.pk}"' in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_a_policy_without_a_bound_says_so(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        DriftReading.objects.update(bounds={})
    seen = text_of(browser(acme.user), PATH)
    assert "0.75 nats a token, no bound holds" in seen
    assert "within bounds Training goes on." in seen


def test_why_turns_taught_nothing(acme: Rows) -> None:
    week(acme, values={"let_through": 0.25}, detail={"reasons": {"side turn": 3, "<b>truncated": 1200}})
    seen = browser(acme.user).get(PATH).content.decode()
    assert "&lt;b&gt;truncated</dt><dd>1\u202f200</dd>" in seen
    assert f'side turn <span class="soft">{Reason.SIDE.words}</span></dt><dd>3</dd>' in seen
    assert seen.index("truncated</dt>") < seen.index("side turn <")


@pytest.mark.parametrize("role", [*Role])
def test_who_may_resume(acme: Rows, role: Role) -> None:
    paused(acme)
    client = browser(member(acme.tenant, role))
    may = role in {Role.OWNER, Role.ADMIN}
    page = client.get(PATH).content.decode()
    assert "Training is paused" in page
    assert ("Resume training" in page) is may
    answer = client.post(
        f"/t/acme/policies/{acme.policy.pk}/training", {"wish": "resume", "reason": "the engine was old"}
    )
    assert answer.status_code == (302 if may else 403)
    with tenant_scope(acme.tenant.pk):
        assert TrainingPause.objects.filter(resumed_at=None).exists() is not may
        audited = AuditEntry.objects.filter(action="policy.resume").values_list("actor", "detail__reason")
        assert [reason for _, reason in audited] == (["the engine was old"] if may else [])
        assert all(str(actor).startswith("user:") for actor, _ in audited)
    if may:
        assert "Training goes on with the next batch." in text_of(client, f"{PATH}?policy={acme.policy.pk}")


@pytest.mark.parametrize("path", ["/t/acme/", "/t/acme/runs"])
def test_a_pause_is_said_where_learning_is_shown_and_asked_for(acme: Rows, path: str) -> None:
    client = browser(acme.user)
    with tenant_scope(acme.tenant.pk):
        Sample.objects.filter(pk=acme.sample.pk).update(state=SampleState.READY, run=None, consumed_at=None)
    drift = f'href="{PATH}?policy={acme.policy.pk}"'
    before = client.get(path).content.decode()
    assert drift not in before
    with CaptureQueriesContext(connection) as unpaused:
        client.get(path)
    paused(acme, "k3 is <0.75")
    with CaptureQueriesContext(connection) as seen:
        page = client.get(path).content.decode()
    assert len(seen) == len(unpaused)
    assert page.count(drift) == 1
    if path.endswith("runs"):
        assert "Train on them now" in before
        assert "Train on them now" not in page
        assert "Training is paused</a>: k3 is &lt;0.75" in page
    else:
        assert "<dt>Learning</dt><dd>on</dd>" in before
        assert f"<dt>Learning</dt><dd><a {drift}>paused</a></dd>" in page
    with tenant_scope(acme.tenant.pk):
        pauses.resume(policy_id=acme.policy.pk, actor="user:1", reason="seen to")
    assert client.get(path).content.decode().count(drift) == 0


def test_resumed_twice_and_paused_twice_is_said(acme: Rows) -> None:
    client, path = browser(acme.user), f"/t/acme/policies/{acme.policy.pk}/training"
    client.post(path, {"wish": "resume"})
    assert "Nothing has changed: training of default is not paused." in text_of(client, PATH)
    client.post(path, {"wish": "pause", "reason": "a <b>look"})
    assert "a &lt;b&gt;look" in client.get(PATH).content.decode()
    client.post(path, {"wish": "pause"})
    assert "Nothing has changed: training of default is paused already." in text_of(client, PATH)
    assert client.post(path, {"wish": "shout"}).status_code == 404


def test_a_foreign_policy_is_nowhere(acme: Rows) -> None:
    other = fill("globex")
    client = browser(acme.user)
    for path in (
        f"{PATH}?policy={other.policy.pk}",
        f"{PATH}.csv?policy={other.policy.pk}",
        f"{PATH}?policy=x",
    ):
        assert client.get(path).status_code == 404
    path = f"/t/acme/policies/{other.policy.pk}/training"
    assert client.post(path, {"wish": "pause"}).status_code == 404
    with tenant_scope(other.tenant.pk):
        assert pauses.why_paused(other.policy.pk) == ""


def test_empty_pages(acme: Rows) -> None:
    client = browser(acme.user)
    with tenant_scope(acme.tenant.pk):
        quiet = Policy.objects.create(name="quiet", base_model="tiny")
    seen = text_of(client, f"{PATH}?policy={quiet.pk}")
    assert "Nothing is read yet" in seen
    assert "When a bound was crossed None was." in seen


def test_the_charts_as_csv(acme: Rows) -> None:
    answer = browser(acme.user).get(f"{PATH}.csv")
    assert answer["Content-Disposition"] == 'attachment; filename="acme-default-drift.csv"'
    body = b"".join(answer).decode()
    rows = list(csv.DictReader(body.splitlines()))
    assert [(row["measure"], row["value"], row["limit"]) for row in rows] == [
        ("rollout_k3", "0.75", "0.5"),
        ("ess", "0.9", "0.4"),
    ]
    assert {row["run"] for row in rows} == {str(acme.run.pk)}


def test_many_readings_cost_as_many_queries_as_one(acme: Rows) -> None:
    client, counts = browser(acme.user), []
    for size in (1, 150):
        for number in range(size):
            reading = week(
                acme,
                values={"let_through": 0.01},
                bounds={"let_through": [0.02, "alert"]},
                until=timezone.now() - dt.timedelta(weeks=size + number),
            )
            with tenant_scope(acme.tenant.pk):
                Crossing.objects.create(
                    policy=acme.policy,
                    reading=reading,
                    measure="let_through",
                    value=0.01,
                    bound=0.02,
                    action="alert",
                    words="nearly all are filtered out",
                    cleared_at=timezone.now(),
                    cleared_by="test",
                )
        client.get(PATH)
        with CaptureQueriesContext(connection) as seen:
            page = client.get(PATH).content.decode()
        counts.append(len(seen))
    assert counts[0] == counts[1] <= 16, counts
    assert len(charts(page)[2]["points"]) == 100
    assert page.count('class="words"') == 20
    older = re.search(r'class="older"><a href="([^"]+)"', page)
    assert older is not None
    assert client.get(PATH + older[1].replace("&amp;", "&")).content.decode().count('class="words"') == 20
