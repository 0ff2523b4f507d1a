"""Somebody who has an account."""

import pytest
from django.core.cache import cache

from apps.accounts.models import User
from kernel.tenancy import system_scope

PASSWORD = "correct horse battery staple"


@pytest.fixture
def eve(db: None, valkey: object) -> User:
    del db, valkey
    cache.clear()
    with system_scope("tests"):
        return User.objects.create_user("eve@example.org", PASSWORD)
