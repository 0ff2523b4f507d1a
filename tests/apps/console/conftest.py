from collections.abc import Iterator

import pytest
from django.test import Client

from apps.accounts.models import User
from kernel.tenancy import system_scope
from tests.apps.console.rows import Rows, fill, operator


@pytest.fixture
def acme(db: None) -> Rows:
    return fill("acme")


@pytest.fixture
def boss(db: None) -> User:
    return operator()


@pytest.fixture
def console(boss: User) -> Client:
    """Return a browser in which an operator is logged in."""
    client = Client()
    client.force_login(boss)
    return client


@pytest.fixture
def everything() -> Iterator[None]:
    """Let the test look at every tenant's rows."""
    with system_scope("test"):
        yield
