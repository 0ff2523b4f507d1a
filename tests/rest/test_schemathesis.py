"""Requests that nobody thought of: schemathesis on /api, as callers of three roles, with ids that exist and ids that do not;
and chains of them, in which what one request made is read, changed, deleted and asked for again."""

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
from kernel.rest.links import word_for
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import fill
from tests.rest.chains import read_after_delete, scenarios
from tests.rest.conftest import Api, member
from tests.rest.test_foreign_ids import ids_of
from tests.rest.test_openapi import DESCRIPTION
from tests.web_process import running_web

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "negative_data_rejection,positive_data_acceptance,unsupported_method,ignored_auth,"
    "use_after_free,ensure_resource_availability"
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
CHAINED = 16
"""Scenarios of each family, of at most `STEPS` requests."""
STEPS = 20
FAMILIES = {
    ("policies", "versions", "moves", "rubrics"): {"POST /api/policies", "GET /api/policies"},
    ("runs", "samples", "drift-readings", "drift-crossings"): {"GET /api/runs"},
    ("sessions", "turns", "feedback", "judgements"): {"GET /api/feedback", "POST /api/turns/{id}/feedback"},
    ("memory",): {"POST /api/memory"},
    ("keys",): {"POST /api/keys"},
    ("webhooks", "deliveries"): {"POST /api/webhooks", "GET /api/webhooks"},
    ("exports", "deletions"): {"POST /api/exports"},
    ("members", "invitations"): {"POST /api/invitations", "GET /api/members"},
    ("opt-outs",): {"POST /api/opt-outs"},
    ("views",): {"POST /api/views"},
}
"""Kinds of things that lead to one another, and from where three requests in a row must have been granted: asked all at once,
chains hardly ever come to a second step."""
WORDS = {
    "wish": "Answer in French.",
    "address": "https://example.org/attune",
    "end_user": "end-acme",
    "name": "mine",
}
BODIES = {
    "/api/deletions": {"body.session": "sessions"},
    "/api/keys": {"body.policies[*]": "policies"},
    "/api/keys/{id}/policies": {"body.policies[*]": "policies"},
    "/api/memory": {"body.policy": "policies", "body.text": "wish"},
    "/api/memory/{id}": {"body.text": "wish"},
    "/api/opt-outs": {"body.end_user": "end_user"},
    "/api/rubrics": {"body.policy": "policies"},
    "/api/runs": {"body.policy": "policies"},
    "/api/views": {"body.name": "name", "body.filters.policy": "policies"},
    "/api/webhooks": {"body.url": "address"},
    "/api/webhooks/{id}": {"body.url": "address"},
}
"""What fields of bodies mostly hold: no letters drawn by chance are a wish, or the address of a server."""
KEPT = {"exports": "/api/exports/{id}", "opt-outs": "/api/opt-outs/{id}"}
"""What is read after its DELETE, with that its file is gone, or when it ended (docs/decisions/rest.md): schemathesis would have
a 404, so the test looks by itself at what else of their families is read then."""
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
    # the links of the description, and none that are guessed: from `GET /api/keys` to the caller's own key
    lines.append(f"[phases.stateful]\nmax-steps = {STEPS}\ninference.algorithms = []")
    values = {kind: str(one) for kind, one in ids.items()} | WORDS
    lines += [f"[dictionaries.{name}]\nvalues = [{json.dumps(one)}]" for name, one in values.items()]
    kinds = {word_for(kind): kind for kind in ids}
    for path, methods in json.loads(DESCRIPTION.read_text(encoding="utf-8"))["paths"].items():
        kind = path.split("/")[2]
        known = {"path.id": kind} if "{id}" in path else {}
        for parameter in methods.get("get", {}).get("parameters", ()):
            if parameter["in"] == "query" and parameter["name"] in kinds:
                known[f"query.{parameter['name']}"] = kinds[parameter["name"]]
        known |= BODIES.get(path, {})
        bound = [f'"{at}" = {{ dictionary = "{name}", probability = 0.7 }}' for at, name in known.items()]
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


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family[0])
def test_schemathesis_finds_nothing_in_chains(web: str, tmp_path: Path, family: tuple[str, ...]) -> None:
    report = tmp_path / "chains.ndjson"
    checks = CHECKS.replace("use_after_free,", "") if family[0] in KEPT else CHECKS
    options = ["--phases", "stateful", "--max-examples", str(CHAINED), "--report-ndjson-path", str(report)]
    options += [option for tag in family for option in ("--include-tag", tag)]
    look(web, Role.OWNER, tmp_path, *options, checks=checks)

    made = list(scenarios(report))
    begun = {step.chain[0] for steps in made for step in steps if len(step.chain) >= 3}
    assert begun >= FAMILIES[family]
    read = {found for steps in made for found in read_after_delete(steps)}
    deleted = any(step.chain and step.operation.startswith("DELETE ") for steps in made for step in steps)
    assert bool(read) == deleted
    assert {status for operation, status in read if operation.removeprefix("GET ") not in KEPT.values()} <= {
        404
    }


def look(web: str, role: Role, folder: Path, *options: str, checks: str = CHECKS) -> None:
    """Let schemathesis ask as somebody of that role; it finds nothing, and the tenant is there afterwards."""
    rows = fill("acme", text="in plain words")
    if role == Role.OWNER:  # the only one, who cannot be demoted on the way
        _, secret = create_key(tenant=rows.tenant, user=rows.user, name="tests", scopes=("read", "manage"))
        asking = Api(secret, rows.user)
    else:
        asking = member(rows.tenant, role)
        secret = asking.secret
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
            *("--url", web, "--header", f"Authorization: Bearer {secret}", "--checks", checks),
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
    assert asking.get("tenant")["slug"] == "acme"
