"""A tenant with rows in every table, and browsers of its people."""

import re
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Role, Tenant, User
from apps.accounts.services import set_role
from kernel.tenancy import system_scope
from tests.apps.console.rows import Rows, fill


def browser(user: User) -> Client:
    """Return a signed-in browser."""
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def member(tenant: Tenant, role: Role) -> User:
    """Make a person of that role."""
    with system_scope("tests"):
        user = User.objects.create_user(f"the-{role}@{tenant.slug}.example", "a password of some length")
    set_role(tenant_id=tenant.pk, user=user, role=role, actor="system:test")
    return user


def text_of(client: Client, url: str) -> str:
    """Return the words of a page."""
    page: Any = client.get(url)
    assert page.status_code == 200, (url, page.status_code)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.content.decode()))


@pytest.fixture
def acme(db: None) -> Rows:
    del db
    return fill("acme")
