from collections.abc import Iterator

import pytest
from pytest_django import Settings

from apps.accounts.models import Membership, Role
from kernel.tenancy import tenant_scope
from tests.apps.alerts.receiver import Receiver, receiving
from tests.tenants import Somebody, add_somebody


@pytest.fixture
def somebody(db: None) -> Iterator[Somebody]:
    """A tenant whose one member is its owner, with its scope entered."""
    made = add_somebody()
    with tenant_scope(made.tenant.id):
        Membership.objects.filter(user=made.user).update(role=Role.OWNER)
        yield made


@pytest.fixture
def loopback(settings: Settings) -> None:
    """Let webhooks go to this machine."""
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def receiver(loopback: None) -> Iterator[Receiver]:
    with receiving() as one:
        yield one
