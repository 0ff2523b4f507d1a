"""Somebody who has an account, and a request of theirs."""

from collections.abc import Iterator
from typing import Any

import pytest
from allauth.account.adapter import get_adapter
from allauth.core.context import request_context
from django.core.cache import cache
from django.test import RequestFactory

from apps.accounts.models import User
from kernel.tenancy import system_scope

PASSWORD = "correct horse battery staple"


@pytest.fixture
def eve(db: None, valkey: object) -> User:
    del db, valkey
    cache.clear()
    with system_scope("tests"):
        return User.objects.create_user("eve@example.org", PASSWORD)


@pytest.fixture
def visited(db: None, eve: User) -> Iterator[Any]:
    """Return allauth's adapter as it is within a request of somebody's."""
    del db
    request = RequestFactory().get("/", headers={"User-Agent": "Lynx/2.9"})
    request.user = eve
    with request_context(request):
        yield get_adapter(request)
