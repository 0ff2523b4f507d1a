"""A tenant with rows in every table, and browsers of its people."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Role, Tenant, User
from apps.accounts.services import set_role
from apps.engines.chat import chat_format
from kernel.tenancy import system_scope
from tests.apps.console.rows import Rows, fill
from tests.chat_model import build_chat_model


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


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_chat_model(tmp_path_factory.mktemp("chat") / "model")


@pytest.fixture(autouse=True)
def _model(chat_model: Path, settings: Any) -> Iterator[None]:
    """Let pages count tokens with a byte tokeniser: one token a byte."""
    settings.MODEL_PATH = chat_model
    chat_format.cache_clear()
    yield
    chat_format.cache_clear()


@pytest.fixture
def acme(db: None) -> Rows:
    del db
    return fill("acme")
