"""Requests that nobody thought of: schemathesis on /api, as callers of three roles, with ids that exist and ids that do not."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from apps.accounts.models import Membership, Role
from apps.keys.services import create_key
from apps.learning.models import Sample, SampleState
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import fill
from tests.rest.conftest import Api, member
from tests.rest.test_foreign_ids import ids_of
from tests.rest.test_openapi import DESCRIPTION
from tests.web_process import running_web

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "negative_data_rejection,positive_data_acceptance,unsupported_method,ignored_auth"
)
PHASES = {
    Role.OWNER: ("examples,coverage,fuzzing", 10),
    Role.MEMBER: ("examples,fuzzing", 8),
    Role.VIEWER: ("examples,fuzzing", 5),
}
"""And examples per operation; what the others may not, they are refused in the same way each time."""


SEED = os.environ.get("ATTUNE_SEED", "7")
"""Another one looks elsewhere; with the same one a finding comes back."""
ACCEPTABLE = ["2XX", "400", "401", "403", "404", "409"]
UNSPEAKABLE = (
    ("/api/keys", "POST"),
    ("/api/policies/{id}/config", "PUT"),
    ("/api/policies/{id}/config", "PATCH"),
    ("/api/views", "POST"),
    ("/api/views/{id}", "PATCH"),
    ("/api/memory", "POST"),
    ("/api/memory/{id}", "PATCH"),
    ("/api/invitations", "POST"),
)
"""Whose descriptions cannot say all: that an expiry has not passed yet, that one setting of training rules out another, that
a view names a policy and a person who are there, that a wish is made of words and gives no orders, that an address is one to
which mail goes."""


@pytest.fixture(scope="module")
def web(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a web process that limits nobody's rate."""
    del django_db_setup
    with running_web(tmp_path_factory.mktemp("web") / "web.log", API_REQUESTS_PER_MINUTE="1000000") as url:
        yield url


def configuration(ids: Mapping[str, uuid.UUID]) -> str:
    """Return a schemathesis.toml that mostly puts ids of rows that exist where an address or a filter takes one.

    Ids from answers are not used again: the caller would end its own key.
    """
    lines = [f"[phases.{phase}.extra-data-sources]\nresponses = false" for phase in ("coverage", "fuzzing")]
    lines += [f"[dictionaries.{kind}]\nvalues = [{json.dumps(str(one))}]" for kind, one in ids.items()]
    for path, methods in json.loads(DESCRIPTION.read_text(encoding="utf-8"))["paths"].items():
        kind = path.split("/")[2]
        known = {"path.id": kind} if "{id}" in path else {}
        for parameter in methods.get("get", {}).get("parameters", ()):
            if f"{parameter['name']}s" in ids:
                known[f"query.{parameter['name']}"] = f"{parameter['name']}s"
        bound = [f'"{at}" = {{ dictionary = "{name}", probability = 0.7 }}' for at, name in known.items()]
        if path in {"/api/runs", "/api/memory"}:
            bound.append('"body.policy" = { dictionary = "policies", probability = 0.7 }')
        if path == "/api/deletions":
            bound.append('"body.session" = { dictionary = "sessions", probability = 0.7 }')
        lines.append(
            f"[[operations]]\ninclude-path = {json.dumps(path)}\nparameters = {{ {', '.join(bound)} }}"
        )
    for path, method in UNSPEAKABLE:
        lines.append(
            f"[[operations]]\ninclude-path = {json.dumps(path)}\ninclude-method = {json.dumps(method)}\n"
            f"checks = {{ positive_data_acceptance = {{ expected-statuses = {ACCEPTABLE} }} }}"
        )
    return "\n".join(lines)


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("role", list(PHASES))
def test_schemathesis_finds_nothing(web: str, role: Role, tmp_path: Path) -> None:
    phases, examples = PHASES[role]
    look(web, role, tmp_path, "--max-examples", str(examples), "--phases", phases)


@pytest.mark.django_db(transaction=True)
def test_schemathesis_finds_nothing_in_what_only_reads(web: str, tmp_path: Path) -> None:
    look(web, Role.OWNER, tmp_path, "--max-examples", "1", "--phases", "fuzzing", "--include-method", "GET")


def look(web: str, role: Role, folder: Path, *options: str) -> None:
    """Let schemathesis ask as somebody of that role; it finds nothing, and the tenant is there afterwards."""
    rows = fill("acme", text="in plain words")
    # the only owner, who cannot be demoted on the way
    person = rows.user if role == Role.OWNER else member(rows.tenant, role).user
    _, secret = create_key(tenant=rows.tenant, user=person, name="tests", scopes=("read", "manage"))
    expendable = member(rows.tenant, Role.VIEWER, scopes=("read",))
    ids = ids_of(rows)
    with tenant_scope(rows.tenant.pk):
        ids["members"] = Membership.objects.get(user=expendable.user).pk
        Sample.objects.filter(pk=rows.sample.pk).update(state=SampleState.READY, run=None, consumed_at=None)
    config = folder / "schemathesis.toml"
    config.write_text(configuration(ids), encoding="utf-8")

    ran = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config)),
            *("run", str(DESCRIPTION)),
            *("--url", web, "--header", f"Authorization: Bearer {secret}", "--checks", CHECKS),
            *(*options, "--seed", SEED),
            # a NUL has no place in Postgres' text; it is refused, which a description cannot say either
            *("--generation-allow-x00", "false", "--no-color", "--continue-on-failure"),
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )

    shown = (ran.stdout + ran.stderr).replace(secret, "KEY")
    assert ran.returncode == 0, shown[-60_000:]
    assert Api(secret, person).get("tenant")["slug"] == "acme"
