"""What a tenant's people see, and what they do not."""

import csv
import datetime as dt
import hashlib
import io
import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern

from apps.accounts.models import Invitation, Membership, Role
from apps.accounts.services import set_role
from apps.adapters.models import AdapterVersion, GateResult, PointerMove, Policy, VersionState
from apps.alerts.models import WebhookEndpoint
from apps.conversations.models import Session, Turn
from apps.dashboard.models import SavedView
from apps.dashboard.templatetags.pages import number
from apps.dashboard.urls import _OF_A_TENANT
from apps.governance.models import Erasure, Export
from apps.keys.models import ApiKey
from apps.memory.models import Preference
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import NASTY, Rows, fill, operator
from tests.apps.dashboard.conftest import browser, member, text_of

PAGES = (
    "",
    "playground",
    "sessions",
    "memory",
    "adapters",
    "runs",
    "drift",
    "reference",
    "keys",
    "members",
    "settings",
    "data",
    "settings/judging",
    "settings/limits",
    "settings/alerts",
    "settings/policies/new",
    "leave",
)
WITHOUT_AN_ID = (
    *("first/events", "runs/events", "data/progress", "data/exports", "data/delete"),
    *("adapters/compare", "runs/compare"),  # what they name stands in the query: test_compare.py
)


def addresses(rows: Rows) -> dict[str, str]:
    """Return every address of a tenant's pages, by its name, with the ids of `rows`."""
    with system_scope("look"):
        ids = {
            "session_id": rows.session.pk,
            "turn_id": rows.turn.pk,
            "version_id": rows.version.pk,
            "policy_id": rows.policy.pk,
            "run_id": rows.run.pk,
            "key_id": ApiKey.objects.get(tenant=rows.tenant).pk,
            "invitation_id": Invitation.objects.get(tenant=rows.tenant).pk,
            "preference_id": Preference.objects.get(tenant=rows.tenant).pk,
            "export_id": Export.objects.get(tenant=rows.tenant).pk,
            "erasure_id": Erasure.objects.get(tenant=rows.tenant).pk,
            "endpoint_id": WebhookEndpoint.objects.get(tenant=rows.tenant).pk,
            "view_id": SavedView.objects.get(tenant=rows.tenant).pk,
            "membership_id": Membership.objects.filter(tenant=rows.tenant)[0].pk,
        }
    found = {}
    for one in _OF_A_TENANT:
        assert isinstance(one, URLPattern)
        path = re.sub(r"<uuid:(\w+)>", lambda match: str(ids[match[1]]), str(one.pattern))
        found[str(one.name)] = path
    return found


def test_a_visitor_is_asked_to_sign_in(acme: Rows) -> None:
    for path in ("/", "/t/acme/", f"/t/acme/sessions/{acme.session.pk}"):
        answer = Client().get(path)
        assert (answer.status_code, answer["Location"]) == (302, f"/accounts/login/?next={path}")


def test_home_is_the_oldest_tenant(acme: Rows) -> None:
    other = fill("globex")
    set_role(tenant_id=other.tenant.pk, user=acme.user, role=Role.VIEWER, actor="system:test")
    client = browser(acme.user)
    assert client.get("/")["Location"] == "/t/acme/"
    assert "You are owner of acme." in text_of(client, "/t/acme/")
    assert "You are viewer of globex." in text_of(client, "/t/globex/")
    assert client.get("/t/nowhere/").status_code == 404


def test_an_operator_without_a_tenant_is_led_to_the_console(db: None) -> None:
    seen = text_of(browser(operator()), "/")
    assert "No tenant yet" in seen
    assert "Console" in seen


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", ("Requests 2 ", "Answers from version 2", "http://127.0.0.1:8001/v1/chat/completions")),
        ("sessions", ("owner@acme.example for end-acme default live 2",)),
        ("adapters", ("Answers from version 2", "2 default 1 ready", "1 default 0 ready")),
        ("runs", ("threshold", "succeeded", "1 → 2", "25 s")),
        ("keys", ("at-", "a key owner@acme.example chat all", "60 requests/min")),
        ("members", ("owner@acme.example owner",)),
        ("settings", ("default yes standard number 1 for good 0.7 2",)),
        ("settings/judging", ("5 votes a judgement", "1 200 80 0", "Nobody.")),
        ("settings/alerts", ("https://hooks.example/in on run.failed", "owner@acme.example owner")),
        ("data", ("the platform: test test.fill", "failed no space left", "Session ", "done 3 of 3")),
    ],
)
def test_a_page_shows_the_tenants_rows(acme: Rows, path: str, words: tuple[str, ...]) -> None:
    fill("globex")
    seen = text_of(browser(acme.user), f"/t/acme/{path}")
    for one in words:
        assert one in seen, (one, seen)
    assert "globex" not in seen.lower()


def test_a_session_tells_what_became_of_each_turn(acme: Rows) -> None:
    seen = text_of(browser(acme.user), f"/t/acme/sessions/{acme.session.pk}")
    for words in (
        "Session of",
        "Version 2",
        "Trained on yes, in version 2",
        "bad",
        "What it should have been",
    ):
        assert words in seen, words


def test_a_version_and_a_run_are_told_whole(acme: Rows) -> None:
    client = browser(acme.user)
    version = text_of(client, f"/t/acme/adapters/{acme.version.pk}")
    for words in (
        "default, version 2 live",
        "Step from version 1",
        "Learned from 2 live turns",
        "Asked between 20",
        "Steps on from it none so far",
        "passed probe",
    ):
        assert words in version, words
    run = text_of(client, f"/t/acme/runs/{acme.run.pk}")
    for words in ("from version 1 to version 2", "Loss 0.5"):
        assert words in run, words


def test_what_the_checks_measured_is_said_in_words(acme: Rows) -> None:
    detail = {"passes": 12, "of": 16, "told_passes": 14, "closeness": -1.5, "reason": "<script>"}
    with tenant_scope(acme.tenant.pk):
        GateResult.objects.create(version=acme.version, check_name="held-out", passed=False, detail=detail)
    seen = text_of(browser(acme.user), f"/t/acme/adapters/{acme.version.pk}")
    for words in (
        "failed held-out its replies to questions that it never learned from",
        "Pass without being told 12 of 16 held-out replies (the told teacher: 14)",
        "Closeness to the teacher \u22121.5 nats a token",
        "Why it did not pass &lt;script&gt;",
    ):
        assert words in seen, words


def test_a_version_that_is_only_made_says_what_it_waits_for(acme: Rows) -> None:
    why = "not live: the policy was rolled back meanwhile; its checks wait: no engine is ready"
    with tenant_scope(acme.tenant.pk):
        AdapterVersion.objects.filter(pk=acme.version.pk).update(state=VersionState.CREATED, reason=why)
    client = browser(acme.user)
    for path in (f"/t/acme/adapters/{acme.version.pk}", "/t/acme/adapters"):
        assert why in text_of(client, path)


@pytest.mark.parametrize("role", [*Role])
def test_a_role_decides_what_is_seen(acme: Rows, role: Role) -> None:
    somebody = browser(member(acme.tenant, role))
    allowed = {
        Role.OWNER: set(PAGES),
        Role.ADMIN: set(PAGES),
        Role.MEMBER: set(PAGES) - {"settings/alerts", "settings/limits", "settings/policies/new", "data"},
        Role.VIEWER: {"", "adapters", "runs", "drift", "settings", "settings/judging", "leave", "reference"},
    }[role]
    for path in PAGES:
        assert somebody.get(f"/t/acme/{path}").status_code == (200 if path in allowed else 403), path
    expected = 200 if role in {Role.OWNER, Role.ADMIN} else 403 if role == Role.VIEWER else 404
    assert somebody.get(f"/t/acme/sessions/{acme.session.pk}").status_code == expected
    assert somebody.get(f"/t/acme/turns/{acme.turn.pk}.json").status_code == expected
    shown = text_of(somebody, "/t/acme/")
    assert ("Sessions" in shown, " Data " in shown) == ("sessions" in allowed, "data" in allowed)


@pytest.mark.parametrize("role", [*Role])
def test_no_address_gives_or_changes_anything_of_another_tenant(acme: Rows, role: Role) -> None:
    other = fill("globex")
    somebody = browser(member(acme.tenant, role))
    with system_scope("look"):
        before = [
            str(list(model._default_manager.filter(tenant=other.tenant).values()))
            for model in (ApiKey, Membership, Preference, Policy, SavedView, WebhookEndpoint)
        ]
    checked = 0
    for name, path in addresses(other).items():
        if path in (*PAGES, "invitations", "playground/ask", *WITHOUT_AN_ID) or path.endswith(".csv"):
            continue
        for method in ("get", "post"):
            answer = getattr(somebody, method)(
                f"/t/acme/{path}", {"role": "owner", "overlap": "0", "score": "1"}
            )
            assert answer.status_code in {403, 404, 405}, (name, method, answer.status_code)
            checked += 1
        assert somebody.get(f"/t/globex/{path}").status_code in {404, 405}
    assert checked == 52
    with system_scope("look"):
        after = [
            str(list(model._default_manager.filter(tenant=other.tenant).values()))
            for model in (ApiKey, Membership, Preference, Policy, SavedView, WebhookEndpoint)
        ]
    assert after == before


def test_pages_run_a_constant_number_of_queries(acme: Rows) -> None:
    bigger = fill("globex", turns=9)
    with system_scope("more"):
        for number in range(20):
            Session.objects.create(
                tenant=bigger.tenant, user=bigger.user, policy=bigger.policy, external_id=str(number)
            )
    small, big = addresses(acme), addresses(bigger)
    for name in (
        "overview",
        "playground",
        "sessions",
        "session",
        "memory",
        "preference",
        "adapters",
        "adapter",
        "runs",
        "run",
        "drift",
        "keys",
        "members",
        "data",
    ):
        counts = []
        for slug, user, paths in (("acme", acme.user, small), ("globex", bigger.user, big)):
            client = browser(user)
            client.get(f"/t/{slug}/")
            with CaptureQueriesContext(connection) as seen:
                assert client.get(f"/t/{slug}/{paths[name]}").status_code == 200
            counts.append(len(seen))
        assert counts[0] == counts[1] <= 22, (name, counts)


def test_lists_are_walked_to_their_end_once(acme: Rows) -> None:
    with system_scope("more"):
        for number in range(120):
            Session.objects.create(
                tenant=acme.tenant, user=acme.user, policy=acme.policy, external_id=f"s{number}"
            )
    client, seen, query = browser(acme.user), [], ""
    while True:
        page = client.get(f"/t/acme/sessions{query}").content.decode()
        seen += re.findall(r"/sessions/([0-9a-f-]{36})", page)
        older = re.search(r'class="older"><a href="([^"]+)"', page)
        if older is None:
            break
        query = older[1].replace("&amp;", "&")
    assert (len(seen), len(set(seen))) == (121, 121)


@pytest.mark.parametrize(
    "query",
    [
        "before=x",
        "before=2026-01-01~x",
        "before=2026-01-01T00:00:00~" + str(uuid.UUID(int=1)),
        "before=0001-01-01T00:00:00%2B23:59~" + str(uuid.UUID(int=1)),
        "before=9999-12-31T23:59:59-23:59~" + str(uuid.UUID(int=1)),
        "policy=x",
        "kind=x",
    ],
)
def test_a_query_that_means_nothing_is_not_found(acme: Rows, query: str) -> None:
    assert browser(acme.user).get(f"/t/acme/sessions?{query}").status_code == 404


@pytest.mark.parametrize(
    "page",
    ["memory?person=", "data?who=", "data?did=", "data/audit.csv?to=", "data/delete?subject=end_user&name="],
)
def test_nothing_is_called_by_what_no_text_holds(acme: Rows, page: str) -> None:
    assert browser(acme.user).get(f"/t/acme/{page}a%00b").status_code == 404


def test_hostile_text_stays_text(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        acme.turn.reply = {"role": "assistant", "content": NASTY + "</script><b>" + "x" * 1_000_000}
        acme.turn.save(update_fields=["reply"])
    page = browser(acme.user).get(f"/t/acme/sessions/{acme.session.pk}").content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "more characters]" in page
    assert len(page) < 200_000
    assert page.rstrip().endswith("</html>")


def test_pages_load_nothing_from_elsewhere_and_hold_no_inline_code(acme: Rows) -> None:
    client = browser(acme.user)
    for url in ("/t/acme/", "/t/acme/runs", f"/t/acme/sessions/{acme.session.pk}", "/accounts/login/"):
        page = (client if "login" not in url else Client()).get(url)
        policy = page["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert policy.startswith("default-src 'none'; script-src 'self'; connect-src 'self'")
        html = page.content.decode()
        for script in re.findall(r"<script[^>]*>", html):
            assert 'src="/static/' in script or 'type="application/json"' in script, script
        assert " style=" not in html
        assert not re.search(r"\son\w+=", html)
        assert set(re.findall(r'(?:src|href)="(https?:)?//', html)) == set()


def test_the_overview_is_had_as_csv(acme: Rows) -> None:
    answer = browser(acme.user).get("/t/acme/overview.csv?range=1d")
    assert answer["Content-Disposition"] == 'attachment; filename="acme-1d.csv"'
    head, row = csv.reader(io.StringIO(b"".join(answer).decode()))
    seen = dict(zip(head, row, strict=True))
    begun, until = (dt.datetime.fromisoformat(seen.pop(name)) for name in ("from", "to"))
    assert begun <= until <= begun + dt.timedelta(minutes=30)
    assert seen == {
        "requests": "2",
        "failed": "0",
        "prompt_tokens": "6",
        "reply_tokens": "8",
        "rewards": "2",
        "reward_mean": "-1.0",
        # of histograms: to within 1 %
        "ttft_p50_ms": "40.05",
        "ttft_p95_ms": "40.05",
        "latency_p50_ms": "907.0",
        "latency_p95_ms": "907.0",
    }


def test_a_first_token_of_which_nobody_knows_counts_nowhere(acme: Rows) -> None:
    client = browser(acme.user)

    def seen() -> tuple[str, str, str]:
        page = client.get("/t/acme/?range=1d").content.decode()
        csv_ = b"".join(client.get("/t/acme/overview.csv?range=1d")).decode()
        (row,) = csv.DictReader(io.StringIO(csv_))
        tile = re.findall(r"<dt>To the first token</dt><dd>(.*?)</dd>", page)[0]
        return tile, row["ttft_p50_ms"], row["latency_p50_ms"]

    with tenant_scope(acme.tenant.pk):
        Turn.objects.exclude(pk=acme.turn.pk).update(first_token_ms=None)
    assert seen() == ('0.04 s<span class="soft"> median, 0.04 s p95</span>', "40.05", "907.0")
    with tenant_scope(acme.tenant.pk):
        Turn.objects.update(first_token_ms=None)
    assert seen() == ("-", "", "907.0")
    turn = client.get(f"/t/acme/sessions/{acme.session.pk}").content.decode()
    assert "<dt>First, last token</dt><dd>-, 0.90 s</dd>" in turn


def test_the_overview_is_of_all_policies_or_of_one(acme: Rows) -> None:
    client, other = browser(acme.user), fill("globex")
    assert 'name="policy"' not in client.get("/t/acme/").content.decode()  # there is one
    with tenant_scope(acme.tenant.pk):
        coder = Policy.objects.create(name="coder", base_model="tiny")
        Turn.objects.exclude(pk=acme.turn.pk).update(policy=coder)
        PointerMove.objects.create(policy=coder, to_version=None, actor="user:1", reason="")

    def chart(query: str) -> dict[str, Any]:
        page = client.get(f"/t/acme/?range=1d{query}").content.decode()
        seen: dict[str, Any] = json.loads(re.findall(r'id="chart-data"[^>]*>(.*?)</script>', page)[0])
        return seen

    whole, one, another = (chart(f"&policy={policy}") for policy in ("", coder.pk, acme.policy.pk))
    assert [sum(point["requests"] for point in seen["points"]) for seen in (whole, one, another)] == [2, 1, 1]
    assert [sum(point["n"] for point in seen["rewards"]) for seen in (whole, one, another)] == [2, 1, 1]
    assert [{move["policy"] for move in seen["moves"]} for seen in (whole, one, another)] == [
        *({"coder", "default"}, {"coder"}, {"default"})
    ]
    assert [seen["named"] for seen in (whole, one, another)] == [True, False, False]
    page = client.get(f"/t/acme/?range=1d&policy={coder.pk}").content.decode()
    assert f'?range=7d&amp;policy={coder.pk}"' in page
    answer = client.get(f"/t/acme/overview.csv?range=1d&policy={coder.pk}")
    assert answer["Content-Disposition"] == 'attachment; filename="acme-coder-1d.csv"'
    (row,) = csv.DictReader(io.StringIO(b"".join(answer).decode()))
    assert (row["requests"], row["rewards"]) == ("1", "1")
    for path in ("", "overview.csv"):
        for wrong in (other.policy.pk, "x"):
            assert client.get(f"/t/acme/{path}?policy={wrong}").status_code == 404


def test_what_is_vendored_is_what_was_vendored() -> None:
    folder = Path(settings.BASE_DIR) / "frontend" / "static" / "vendor"
    sums = dict(
        reversed(line.split("  ", 1))
        for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    )
    files = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "SHA256SUMS"
    }
    assert files == sums
    assert {path.parent.name for path in folder.rglob("LICENSE")} == {
        path.name for path in folder.iterdir() if path.is_dir()
    }


def test_the_web_says_that_it_is_well(db: None) -> None:
    answer = Client().get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_browsers_find_an_icon(db: None) -> None:
    answer = Client().get("/favicon.ico")
    assert (answer.status_code, answer["Location"]) == (302, "/static/attune/favicon.svg")
    icon = Client().get(answer["Location"])
    assert icon.status_code == 200
    assert b"".join(icon.streaming_content).startswith(b"<svg ")  # type: ignore[attr-defined]


def test_what_a_step_measured_in_parts_reads_as_numbers() -> None:
    parts = {"load": 0.0008845539996400476, "learn": {"0": 1}, "n": 3}
    assert number(parts) == "load: 0.00088455, learn: 0: 1, n: 3"
