"""Which address of an account may be its first one: a confirmed one, that no other account has."""

import pytest
from allauth.account.models import EmailAddress
from django.test import Client

from apps.accounts import words
from apps.accounts.models import User
from kernel.tenancy import system_scope
from tests.apps.accounts.conftest import PASSWORD
from tests.apps.accounts.test_words import inside


@pytest.fixture(autouse=True)
def unconfirmed(eve: User) -> None:
    """Her own address is the first, as after signing up."""
    EmailAddress.objects.create(user=eve, email=eve.email, primary=True, verified=False)


def made_first(client: Client, email: str) -> str:
    """Ask for an address to be the first; returns the page that follows."""
    answer = client.post("/accounts/email/", {"action_primary": "", "email": email}, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def first_of(user: User) -> tuple[str, list[str]]:
    """Return by which address somebody signs in, and which ones are marked as the first."""
    marked = EmailAddress.objects.filter(user=user, primary=True).values_list("email", flat=True)
    with system_scope("tests"):
        return User.objects.get(pk=user.pk).email, list(marked)


def test_an_unconfirmed_address_is_not_the_first_whoever_else_has_it(eve: User) -> None:
    with system_scope("tests"):
        User.objects.create_user("ada@example.org", PASSWORD)
    client = inside(eve)
    seen = []
    for email in ("ada@example.org", "free@example.org"):
        added = client.post(
            "/accounts/email/", {"action_add": "", "email": email}, follow=True
        ).content.decode()
        assert email in added
        page = made_first(client, email)
        assert words.FIRST_UNCONFIRMED in page
        seen.append(page.count(words.FIRST_UNCONFIRMED))
    assert seen == [1, 1]
    assert first_of(eve) == ("eve@example.org", ["eve@example.org"])


def test_an_address_that_holds_what_no_text_holds_is_nobodys(eve: User) -> None:
    made_first(inside(eve), "eve\x00@example.org")
    assert first_of(eve) == ("eve@example.org", ["eve@example.org"])


@pytest.mark.parametrize("written", ["FREE@EXAMPLE.ORG", "Free@Example.org", " free@example.org "])
def test_an_unconfirmed_address_is_not_the_first_however_it_is_written(eve: User, written: str) -> None:
    EmailAddress.objects.create(user=eve, email="free@example.org", verified=False)
    assert words.FIRST_UNCONFIRMED in made_first(inside(eve), written)
    assert first_of(eve) == ("eve@example.org", ["eve@example.org"])


@pytest.mark.parametrize(
    ("verified", "why"), [(False, words.FIRST_UNCONFIRMED), (True, words.FIRST_ELSEWHERE)]
)
def test_one_of_another_account_is_refused_in_words_in_capitals_too(
    eve: User, verified: bool, why: str
) -> None:
    with system_scope("tests"):
        User.objects.create_user("ada@example.org", PASSWORD)
    EmailAddress.objects.create(user=eve, email="ada@example.org", verified=verified)
    assert why in made_first(inside(eve), "ADA@EXAMPLE.ORG")
    assert first_of(eve) == ("eve@example.org", ["eve@example.org"])


def test_a_confirmed_address_becomes_the_first(eve: User) -> None:
    client = inside(eve)
    EmailAddress.objects.create(user=eve, email="new@example.org", verified=True)
    assert "new@example.org" in made_first(client, "new@example.org")
    assert first_of(eve) == ("new@example.org", ["new@example.org"])


def test_one_that_another_account_goes_by_does_not_and_changes_nothing(eve: User) -> None:
    """Somebody signed up with it and never confirmed it; whose it is has confirmed it here."""
    with system_scope("tests"):
        squatter = User.objects.create_user("bob@example.org", PASSWORD)
    client = inside(eve)
    EmailAddress.objects.create(user=eve, email="bob@example.org", verified=True)
    assert words.FIRST_ELSEWHERE in made_first(client, "bob@example.org")
    assert first_of(eve) == ("eve@example.org", ["eve@example.org"])
    assert first_of(squatter)[0] == "bob@example.org"


def test_an_address_of_nobody_or_of_another_is_nothing_to_make_the_first(eve: User) -> None:
    with system_scope("tests"):
        ada = User.objects.create_user("ada@example.org", PASSWORD)
    EmailAddress.objects.create(user=ada, email="ada@example.org", verified=True)
    client = inside(eve)
    for email in ("ada@example.org", "nobody@example.org", "no address"):
        page = made_first(client, email)
        assert words.FIRST_UNCONFIRMED not in page
        assert words.FIRST_ELSEWHERE not in page
    assert first_of(eve) == ("eve@example.org", ["eve@example.org"])
