"""`first_run` and the commands for later, as their callers use them."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from apps.accounts.models import Membership, Tenant, User
from apps.adapters.models import Policy
from apps.keys.models import ApiKey
from apps.keys.services import authenticate
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope

pytestmark = pytest.mark.django_db
FIELDS = ["web_url", "api_base", "api_key", "operator_email", "operator_password", "tenant"]


def run(command: str, *arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command(command, *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def first_run(*arguments: str) -> dict[str, str | None]:
    made: dict[str, str | None] = json.loads(run("first_run", "--json", *arguments)[0])
    return made


def counts() -> list[int]:
    with system_scope("test"):
        return [model.objects.count() for model in (User, Tenant, Membership, Policy, ApiKey)]


def test_the_first_one_makes_what_is_needed(settings: Settings) -> None:
    settings.BASE_MODEL_NAME = "some-base"
    made = first_run()
    assert list(made) == FIELDS
    assert (made["web_url"], made["api_base"]) == (settings.WEB_URL, settings.API_BASE)
    assert (made["operator_email"], made["tenant"]) == ("operator@localhost", "demo")
    assert counts() == [1, 1, 1, 1, 1]
    caller = authenticate(f"Bearer {made['api_key']}")
    assert caller.scopes == {"chat", "read", "manage", "evaluate"}
    with tenant_scope(caller.tenant_id):
        policy = Policy.objects.get()
        assert Membership.objects.get().role == "owner"
    assert (policy.name, policy.base_model, policy.live_id) == ("default", "some-base", None)


def test_whoever_asks_for_one_secret_is_not_told_how_to_get_the_other(settings: Settings) -> None:
    settings.FIRST_RUN_FILE = None
    first_run()
    assert run("first_run")[1].splitlines() == [
        "A key exists already: --new-key makes another.",
        "The operator exists already: --new-password gives them another password.",
    ]
    assert run("first_run", "--new-password")[1] == ""
    assert run("first_run", "--new-key")[1] == ""
    settings.FIRST_RUN_FILE = Path("/nowhere/first-run.json")
    assert "(/nowhere/first-run.json has what was made)" in run("first_run")[1]


def test_the_password_opens_the_console(valkey: object) -> None:
    made = first_run("--operator-email", "Boss@Example.org")
    client = Client()
    client.post("/accounts/login/", {"login": "boss@example.org", "password": made["operator_password"]})
    assert client.get("/console/").status_code == 200


def test_the_second_one_changes_nothing_and_says_that_secrets_cannot_be_shown() -> None:
    first = first_run()
    out, err = run("first_run", "--json")
    assert json.loads(out) == {**first, "api_key": None, "operator_password": None}
    assert "--new-key makes another" in err
    assert "--new-password gives them another" in err
    assert counts() == [1, 1, 1, 1, 1]
    authenticate(f"Bearer {first['api_key']}")


def test_another_key_and_password_on_request() -> None:
    first = first_run()
    key = first_run("--new-key")
    assert key["operator_password"] is None
    assert key["api_key"] not in {None, first["api_key"]}
    password = first_run("--new-password")
    assert password["api_key"] is None
    operator = User.objects.get()
    assert operator.check_password(password["operator_password"] or "")
    assert not operator.check_password(first["operator_password"] or "")
    assert counts() == [1, 1, 1, 1, 2]
    for made in (first, key):
        authenticate(f"Bearer {made['api_key']}")


def test_the_file_that_make_up_shows_is_kept_true(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "first-run.json"
    kept = {**first_run(), "web_url": "http://elsewhere"}
    file.write_text(json.dumps(kept))
    settings.FIRST_RUN_FILE = file

    made = first_run("--new-password")
    first_run("--new-key", "--tenant", "another")  # of which the file does not speak

    assert json.loads(file.read_text()) == {**kept, "operator_password": made["operator_password"]}
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["first-run.json"]


def test_what_was_made_earlier_is_looked_for_where_it_stands(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "first-run.json"
    settings.FIRST_RUN_FILE = file
    file.write_text(json.dumps(first_run()))
    out, _ = run("first_run", "--new-password")
    assert f"api_key            (made earlier, stands in {file})" in out.splitlines()
    out, _ = run("first_run", "--new-password", "--tenant", "another")
    out, _ = run("first_run", "--new-password", "--tenant", "another")  # of which the file does not speak
    assert "api_key            (made earlier, not shown again)" in out.splitlines()


def test_another_password_signs_the_operator_out_everywhere(valkey: object) -> None:
    made = first_run()
    clients = [Client(), Client()]
    for client in clients:
        given = {"login": made["operator_email"], "password": made["operator_password"]}
        client.post("/accounts/login/", given)
        assert client.get("/console/").status_code == 200
    first_run("--new-password")
    assert [client.get("/console/").status_code for client in clients] == [302, 302]


def test_asking_for_both_at_the_first_one_makes_one_of_each() -> None:
    made = first_run("--new-key", "--new-password")
    assert None not in made.values()
    assert counts() == [1, 1, 1, 1, 1]


def test_what_is_missing_is_made_again() -> None:
    first_run()
    with system_scope("test"):
        ApiKey.objects.all().delete()
    made = first_run()
    assert made["api_key"] is not None
    assert made["operator_password"] is None


def test_all_of_it_or_nothing() -> None:
    with pytest.raises(CommandError, match="tenant slug 'De mo'"):
        first_run("--tenant", "De mo")
    assert counts() == [0, 0, 0, 0, 0]
    with pytest.raises(CommandError, match="'operator' is not an email address"):
        first_run("--operator-email", "operator")
    assert counts() == [0, 0, 0, 0, 0]


def test_no_secret_is_written_anywhere_but_to_the_caller() -> None:
    made = first_run("--new-key", "--new-password")
    secret = str(made["api_key"]).split("-", 2)[2]
    with system_scope("test"):
        entries = list(AuditEntry.objects.order_by("id"))
        key = ApiKey.objects.get()
    assert [entry.action for entry in entries] == [
        *("user.create", "tenant.create", "member.add", "policy.create", "key.create"),
    ]
    written = json.dumps([[entry.target, entry.detail] for entry in entries])
    for text in (written, str(key), repr(key), str(key.__dict__)):
        assert secret not in text
        assert str(made["operator_password"]) not in text


def test_a_person_can_read_it_too() -> None:
    out, _ = run("first_run")
    assert [line.split()[0] for line in out.splitlines()] == FIELDS


def test_a_tenant_for_somebody_new_and_for_somebody_known() -> None:
    out, _ = run("create_tenant", "acme", "--name", "Acme", "--owner-email", "Ada@Example.org")
    first, second = out.splitlines()
    assert first == "tenant acme, policy default, owner ada@example.org"
    password = second.removeprefix("password ").removesuffix(" (shown once)")
    assert User.objects.get().check_password(password)
    out, _ = run("create_tenant", "globex", "--owner-email", "ada@example.org")
    assert out == "tenant globex, policy default, owner ada@example.org\n"
    assert counts() == [1, 2, 2, 2, 0]
    with pytest.raises(CommandError, match="already a tenant 'acme'"):
        run("create_tenant", "acme", "--owner-email", "bob@example.org")
    assert counts() == [1, 2, 2, 2, 0]


def test_a_key_for_a_member_and_for_nobody_else() -> None:
    run("create_tenant", "acme", "--owner-email", "ada@example.org")
    run("create_tenant", "globex", "--owner-email", "bob@example.org")
    options = ("--tenant", "acme", "--name", "laptop")
    out, _ = run("create_key", *options, "--user", "ada@example.org", "--scopes", "chat", "read")
    caller = authenticate(f"Bearer {out.strip()}")
    assert caller.scopes == {"chat", "read"}
    for user, words in (("bob@example.org", "not a member"), ("eve@example.org", "nobody has the address")):
        with pytest.raises(CommandError, match=words):
            run("create_key", *options, "--user", user)
    with pytest.raises(CommandError, match="no tenant 'nowhere'"):
        run("create_key", "--tenant", "nowhere", "--name", "x", "--user", "ada@example.org")
    assert counts()[4] == 1
