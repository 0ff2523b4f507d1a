"""`manage.py webhooks`: an operator lists, makes, tries and removes endpoints, whosever they are."""

import io
import json
import uuid

import pytest
from django.core.management import CommandError, call_command

from apps.alerts import endpoints
from apps.alerts.models import Alert, Delivery, WebhookEndpoint
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.tenants import Somebody, add_somebody

ACTOR = "system:command line"


def run(*said: str) -> tuple[str, str]:
    """Return what the command printed on standard output and on standard error."""
    out, err = io.StringIO(), io.StringIO()
    call_command("webhooks", *said, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def made(
    somebody: Somebody, url: str = "https://hooks.example/in?token=s3cret", *events: str
) -> WebhookEndpoint:
    row, _ = endpoints.create_endpoint(
        tenant_id=somebody.tenant.pk, url=url, events=events or ["run.failed"], actor="user:1"
    )
    return row


def audited() -> list[tuple[str, str]]:
    """Return what the command line is written down for, in order, with whom it was done to."""
    with system_scope("tests"):
        return list(AuditEntry.objects.filter(actor=ACTOR).order_by("id").values_list("action", "target"))


@pytest.fixture
def globex(db: None) -> Somebody:
    del db
    return add_somebody("globex")


def test_one_is_made_and_its_secret_printed_alone(somebody: Somebody) -> None:
    out, err = run(
        "add", "https://hooks.example/in", "--tenant", "acme", "--events", "run.failed", "version.live"
    )
    row = WebhookEndpoint.objects.get()
    assert (row.url, row.events) == ("https://hooks.example/in", ["run.failed", "version.live"])
    assert out.startswith("whsec_")
    assert len(out.split()) == 1
    assert str(row.pk) in err
    rotated, _ = run("rotate", str(row.pk))
    assert rotated.startswith("whsec_")
    assert rotated != out
    row.refresh_from_db()
    assert row.previous_until is not None
    assert audited() == [("webhook.create", f"webhook:{row.pk}"), ("webhook.rotate", f"webhook:{row.pk}")]


def test_the_list_is_a_table_of_all_tenants_or_of_one(somebody: Somebody, globex: Somebody) -> None:
    row = made(somebody)
    endpoints.switch_off(endpoint_id=row.pk, actor="user:1", reason="it answered\x1b[2J nothing")
    with tenant_scope(globex.tenant.pk):
        other = made(globex, "https://in.example:8443/", "version.live", "run.failed")
    assert run("list")[0].splitlines() == [
        f"{'id':36}  tenant  host                     state                        told of",
        f"{row.pk}  acme    https://hooks.example    off: it answered[2J nothing  run.failed",
        f"{other.pk}  globex  https://in.example:8443  on                           version.live run.failed",
    ]
    assert str(row.pk) not in run("list", "--tenant", "globex")[0]
    (plain,) = json.loads(run("list", "--tenant", "globex", "--json")[0])
    assert plain == {
        "id": str(other.pk), "tenant": "globex", "host": "https://in.example:8443", "events": ["version.live", "run.failed"],
        "enabled": True, "disabled_reason": "", "failing_since": None, "created_at": other.created_at.isoformat(),
    }  # fmt: skip
    assert "s3cret" not in run("list")[0] + run("list", "--json")[0]
    assert audited() == []


def test_a_list_of_none_says_so(somebody: Somebody) -> None:
    assert run("list")[0] == "There are no webhook endpoints.\n"
    assert run("list", "--json")[0] == "[]\n"


def test_a_test_is_sent_once_at_a_time(somebody: Somebody) -> None:
    row = made(somebody)
    out, _ = run("test", str(row.pk))
    delivery = Delivery.objects.get()
    assert (
        out == f"A test is on its way to https://hooks.example of acme ({row.pk}): delivery {delivery.pk}.\n"
    )
    with pytest.raises(CommandError, match=r"^A test is on its way to this endpoint\.$"):
        run("test", str(row.pk))
    assert audited() == [("webhook.test", f"webhook:{row.pk}")]


def test_one_is_removed_and_the_others_stay(somebody: Somebody) -> None:
    row, other = made(somebody), made(somebody)
    run("test", str(row.pk))
    out, _ = run("remove", str(row.pk))
    assert out == f"Removed: https://hooks.example of acme ({row.pk}).\n"
    assert list(WebhookEndpoint.objects.all()) == [other]
    assert (Alert.objects.count(), Delivery.objects.count()) == (1, 0)
    assert audited()[-1] == ("webhook.delete", f"webhook:{row.pk}")
    with pytest.raises(
        CommandError, match=f"^There is no webhook endpoint {row.pk}: `webhooks list` prints all"
    ):
        run("remove", str(row.pk))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["add", "http://hooks.example", "--tenant", "acme"], "An address begins with https://"),
        (["add", "https://hooks.example", "--tenant", "nobody"], "nobody"),
        (["add", "https://hooks.example"], "--tenant"),
        (["add", "https://hooks.example", "--tenant", "acme", "--events", "moon.full"], "invalid choice: 'moon.full'"),
        (["list", "--tenant", "nobody"], "nobody"),
        (["test", str(uuid.UUID(int=1))], "There is no webhook endpoint"),
        (["remove", "7"], "invalid UUID value: '7'"),
        (["remove"], "id"),
        ([], "ACT"),
    ],
)  # fmt: skip
def test_a_wrong_word_is_named_and_changes_nothing(somebody: Somebody, said: list[str], words: str) -> None:
    row = made(somebody)
    with pytest.raises(CommandError, match=words):
        run(*said)
    assert list(WebhookEndpoint.objects.all()) == [row]
    assert audited() == []
