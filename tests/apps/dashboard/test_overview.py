"""What a tenant's people see, and what they do not."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Role, User
from apps.accounts.services import set_role
from apps.conversations.models import Session
from kernel.tenancy import system_scope
from tests.apps.console.rows import Rows, fill, operator

pytestmark = pytest.mark.django_db


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def text_of(client: Client, url: str = "/") -> str:
    page = client.get(url)
    assert page.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.content.decode()))


@pytest.fixture
def acme() -> Rows:
    return fill("acme")


def test_a_visitor_is_asked_to_sign_in() -> None:
    answer = Client().get("/")
    assert (answer.status_code, answer["Location"]) == (302, "/accounts/login/?next=/")


def test_an_owner_sees_the_tenants_policies_versions_and_sessions(acme: Rows) -> None:
    seen = text_of(browser(acme.user))
    for words in (
        "ACME You are owner of acme.",
        "Answers from version 2",
        "2 live default ready 2 turns",
        "owner@acme.example default 2",
        "http://127.0.0.1:8001/v1/chat/completions",
    ):
        assert words in seen, words
    assert "Console" not in seen


def test_the_page_names_nothing_of_another_tenant(acme: Rows) -> None:
    other = fill("globex")
    seen = browser(acme.user).get("/").content.decode()
    assert "globex" not in seen.lower()
    assert str(other.policy.pk) not in seen
    client = browser(acme.user)
    assert client.get("/?tenant=globex").status_code == 404
    assert client.get("/?tenant=nowhere").status_code == 404
    assert client.get("/?tenant=acme").status_code == 200


@pytest.mark.parametrize(
    ("role", "heading", "whose"),
    [
        (Role.ADMIN, "Last sessions", {"owner@acme.example", "bob@acme.example"}),
        (Role.MEMBER, "Your last sessions", {"bob@acme.example"}),
        (Role.VIEWER, None, set()),
    ],
)
def test_a_role_decides_whose_sessions_are_seen(
    acme: Rows, role: Role, heading: str | None, whose: set[str]
) -> None:
    bob = User.objects.create_user("bob@acme.example", "a password of some length")
    set_role(tenant_id=acme.tenant.pk, user=bob, role=role, actor="system:test")
    with system_scope("test"):
        Session.objects.create(tenant=acme.tenant, user=bob, policy=acme.policy)
    seen = text_of(browser(bob))
    assert ("Your last sessions" in seen, "Last sessions" in seen) == (
        heading == "Your last sessions",
        heading == "Last sessions",
    )
    main = browser(bob).get("/").content.decode().partition("<main")[2]
    assert set(re.findall(r"\w+@acme\.example", main)) == whose


def test_somebody_of_two_tenants_switches_between_them(acme: Rows) -> None:
    other = fill("globex")
    set_role(tenant_id=other.tenant.pk, user=acme.user, role=Role.VIEWER, actor="system:test")
    client = browser(acme.user)
    assert "You are owner of acme." in text_of(client)
    assert "You are viewer of globex." in text_of(client, "/?tenant=globex")


def test_an_operator_without_a_tenant_is_led_to_the_console() -> None:
    seen = text_of(browser(operator()))
    assert "No tenant yet" in seen
    assert "Console" in seen


def test_the_page_runs_a_constant_number_of_queries(acme: Rows) -> None:
    client = browser(acme.user)
    with CaptureQueriesContext(connection) as few:
        client.get("/")
    bigger = fill("globex", turns=9)
    other = browser(bigger.user)
    with CaptureQueriesContext(connection) as many:
        other.get("/")
    assert len(many) == len(few) <= 8


def test_pages_load_nothing_from_elsewhere_and_run_no_scripts(acme: Rows) -> None:
    for url, client in (("/", browser(acme.user)), ("/accounts/login/", Client())):
        page = client.get(url)
        assert page["Content-Security-Policy"].startswith(
            "default-src 'none'; style-src 'self'; img-src 'self'"
        )
        html = page.content.decode()
        assert "<script" not in html
        assert " style=" not in html
        assert not re.search(r" on\w+=", html)
        assert set(re.findall(r'(?:src|href)="(https?:)?//', html)) == set()


def test_the_web_says_that_it_is_well() -> None:
    answer = Client().get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_browsers_find_an_icon() -> None:
    answer = Client().get("/favicon.ico")
    assert (answer.status_code, answer["Location"]) == (302, "/static/attune/favicon.svg")
    icon = Client().get(answer["Location"])
    assert icon.status_code == 200
    assert b"".join(icon.streaming_content).startswith(b"<svg ")  # type: ignore[attr-defined]
