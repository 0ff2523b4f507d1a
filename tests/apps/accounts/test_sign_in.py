"""Signing in, for everybody at one place."""

import pytest
from django.test import Client

from apps.accounts.services import create_user
from kernel.tenancy import system_scope
from tests.mails import sent

pytestmark = pytest.mark.usefixtures("db", "valkey")
PASSWORD = "correct horse battery staple"


@pytest.fixture(autouse=True)
def ada(db: None) -> None:
    with system_scope("test"):
        create_user(email="ada@example.org", password=PASSWORD, operator=True, actor="system:test")


def test_the_right_password_opens_the_page_that_was_asked_for() -> None:
    client = Client()
    asked = client.get("/console/", follow=True)
    assert asked.redirect_chain[-1][0].startswith("/accounts/login/?next=")
    answer = client.post(
        "/accounts/login/", {"login": "Ada@Example.org", "password": PASSWORD, "next": "/console/"}
    )
    assert (answer.status_code, answer["Location"]) == (302, "/console/")
    assert client.get("/console/").status_code == 200
    assert sent() == []


def test_a_wrong_password_says_so_without_saying_which_part_was_wrong() -> None:
    client = Client()
    wrong = client.post("/accounts/login/", {"login": "ada@example.org", "password": "x" * 20})
    nobody = client.post("/accounts/login/", {"login": "bob@example.org", "password": "x" * 20})
    for answer in (wrong, nobody):
        assert answer.status_code == 200
        assert "Email and password do not go together." in answer.content.decode()
    assert client.get("/", follow=False).status_code == 302


def test_a_redirect_to_elsewhere_is_not_followed() -> None:
    answer = Client().post(
        "/accounts/login/",
        {"login": "ada@example.org", "password": PASSWORD, "next": "https://evil.example/"},
    )
    assert answer["Location"] == "/"


def test_guessing_is_slowed_down() -> None:
    client = Client()

    def guess(password: str) -> str:
        return client.post(
            "/accounts/login/", {"login": "ada@example.org", "password": password}
        ).content.decode()

    for number in range(5):
        assert "do not go together" in guess(f"guess number {number}")
    assert "Too many tries: after 5 that fail within 5 minutes none is taken." in guess("guess number 5")
    assert "Too many tries: after 5 that fail within 5 minutes none is taken." in guess(PASSWORD)
    assert client.get("/").status_code == 302


def test_signing_out_needs_a_post_and_ends_the_session() -> None:
    client = Client()
    client.post("/accounts/login/", {"login": "ada@example.org", "password": PASSWORD})
    assert client.get("/accounts/logout/").status_code == 200
    assert client.get("/").status_code == 200
    client.post("/accounts/logout/")
    assert client.get("/").status_code == 302
