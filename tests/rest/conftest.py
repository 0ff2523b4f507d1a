"""A tenant with rows in every table, and callers of each role."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from apps.accounts.models import Role, Tenant, User
from apps.accounts.services import set_role
from apps.keys.services import create_key
from kernel.rest.throttle import CallerThrottle
from kernel.tenancy import system_scope
from tests.apps.console.rows import Rows, fill


@dataclass(slots=True)
class Api:
    """Asks /api with one key."""

    secret: str
    user: User

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return the response; `path` is relative to /api."""
        return Client(raise_request_exception=False).generic(
            method,
            f"/api/{path}",
            data=b"" if body is None else _json(body),
            content_type="application/json",
            headers={"Authorization": f"Bearer {self.secret}", **headers},
        )

    def get(self, path: str) -> Any:
        """Return what is read."""
        answer = self.ask("GET", path)
        assert answer.status_code == 200, answer.content
        return answer.json()


def _json(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def member(tenant: Tenant, role: Role, *, scopes: tuple[str, ...] = ("read", "manage")) -> Api:
    """Make a person of that role with a key that was made while they were a member."""
    with system_scope("tests"):
        user = User.objects.create_user(f"{role}-{len(scopes)}@{tenant.slug}.example")
    set_role(tenant_id=tenant.pk, user=user, role=Role.MEMBER, actor="system:tests")
    _, secret = create_key(tenant=tenant, user=user, name="tests", scopes=scopes)
    set_role(tenant_id=tenant.pk, user=user, role=role, actor="system:tests")
    return Api(secret, user)


@pytest.fixture(autouse=True)
def _no_rates_from_before(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.clear()
    monkeypatch.setattr(CallerThrottle, "THROTTLE_RATES", {"api": "100000/min"})


@pytest.fixture
def acme(db: None) -> Rows:
    del db
    return fill("acme")


@pytest.fixture
def owner(acme: Rows) -> Api:
    _, secret = create_key(tenant=acme.tenant, user=acme.user, name="owner", scopes=("read", "manage"))
    return Api(secret, acme.user)
