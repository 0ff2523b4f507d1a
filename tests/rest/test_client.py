"""The typed client: it is what its generator makes of the description, and it speaks to the views."""

import filecmp
import runpy
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import httpx
import pytest
from attune_client import AuthenticatedClient
from attune_client.api.keys import keys_create, keys_list, keys_revoke_create, keys_rotate_create
from attune_client.api.policies import (
    policies_create,
    policies_list,
    policies_partial_update,
    policies_point_create,
)
from attune_client.api.runs import runs_cancel_create, runs_create, runs_resume_create
from attune_client.api.sessions import sessions_list
from attune_client.api.tenant import tenant_partial_update, tenant_retrieve
from attune_client.api.turns import turns_feedback_create, turns_list, turns_retrieve
from attune_client.models import (
    Feedback,
    Key,
    NewFeedbackRequest,
    NewKeyRequest,
    NewPolicyRequest,
    NewRunRequest,
    PointerRequest,
    Policy,
    PolicyChangeRequest,
    Problem,
    RotationRequest,
    Run,
    Secret,
    Tenant,
    TenantRequest,
    Turn,
)
from attune_client.types import UNSET, Unset
from django.test import Client

from apps.adapters.models import Policy as PolicyRow
from apps.learning.models import Sample, SampleState
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows
from tests.rest.conftest import Api

CLIENT = Path(__file__).resolve().parents[2] / "deploy" / "client"


class ToTheViews(httpx.BaseTransport):
    """Hands requests to Django's own test client: no socket, and the test's transaction."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return what the view answers."""
        answer = Client(raise_request_exception=False).generic(
            request.method,
            request.url.raw_path.decode(),
            data=request.read(),
            content_type=request.headers.get("Content-Type", ""),
            headers=dict(request.headers),
        )
        return httpx.Response(answer.status_code, headers=dict(answer.items()), content=answer.content)


def speaking(secret: str) -> AuthenticatedClient:
    """Return the client with a key, in front of the views."""
    return AuthenticatedClient(
        base_url="http://testserver",
        token=secret,
        raise_on_unexpected_status=True,
        httpx_args={"transport": ToTheViews()},
    )


@pytest.fixture
def client(owner: Api) -> Iterator[AuthenticatedClient]:
    with speaking(owner.secret) as open_:
        yield open_


def test_the_client_is_what_the_generator_makes_of_the_description(tmp_path: Path) -> None:
    """Run `make openapi` where it is not."""
    made = tmp_path / "attune_client"
    runpy.run_path(str(CLIENT / "generate.py"))["generate"](made)
    assert differences(filecmp.dircmp(CLIENT / "attune_client", made, ignore=["__pycache__"])) == []


def differences(folders: "filecmp.dircmp[str]") -> list[str]:
    """Return the names of what is in one of two folders only, or not the same in both."""
    found = [*folders.left_only, *folders.right_only]
    found += [
        name for name in folders.common_files if _bytes(folders.left, name) != _bytes(folders.right, name)
    ]
    return found + [name for inner in folders.subdirs.values() for name in differences(inner)]


def _bytes(folder: str, name: str) -> bytes:
    return (Path(folder) / name).read_bytes()


def test_a_key_is_made_shown_once_rotated_and_revoked(acme: Rows, client: AuthenticatedClient) -> None:
    made = keys_create.sync(client=client, body=NewKeyRequest(name="laptop", scopes=["read"]))
    assert isinstance(made, Secret)
    with speaking(made.secret) as laptop:
        assert isinstance(tenant_retrieve.sync(client=laptop), Tenant)
        listed = keys_list.sync_detailed(client=client)
        assert made.key.prefix.encode() in listed.content
        assert made.secret.encode() not in listed.content

        after = keys_rotate_create.sync(made.key.id, client=client, body=RotationRequest(overlap_s=60))
        assert isinstance(after, Secret)
        assert isinstance(tenant_retrieve.sync(client=laptop), Tenant)  # both, for a minute

        ended = keys_revoke_create.sync(made.key.id, client=client)
        assert isinstance(ended, Key)
        assert ended.revoked_at is not None
        refused = tenant_retrieve.sync(client=laptop)
    assert isinstance(refused, Problem)
    assert (refused.status, refused.code) == (401, "invalid_api_key")
    with speaking(after.secret) as successor:
        assert isinstance(tenant_retrieve.sync(client=successor), Tenant)
    with tenant_scope(acme.tenant.pk):
        kept = str(list(AuditEntry.objects.values_list("detail", "target", "actor")))
    assert made.secret not in kept
    assert after.secret not in kept


def test_a_tenant_is_shown_and_renamed(acme: Rows, client: AuthenticatedClient) -> None:
    renamed = tenant_partial_update.sync(client=client, body=TenantRequest(name="Acme & Sons"))
    assert isinstance(renamed, Tenant)
    assert (renamed.id, renamed.slug, renamed.name) == (acme.tenant.pk, "acme", "Acme & Sons")
    assert renamed.training_enabled is True


def test_a_turn_is_shown_whole_and_thumbed_once(acme: Rows, client: AuthenticatedClient) -> None:
    page = turns_list.sync(client=client, session=acme.session.pk, page_size=1)
    assert page is not None
    assert not isinstance(page, Problem)
    turn = turns_retrieve.sync(page.results[0].id, client=client)
    assert isinstance(turn, Turn)
    assert turn.output_ids == acme.turn.output_ids
    said = [
        turns_feedback_create.sync(
            turn.id, client=client, body=NewFeedbackRequest(score=1), idempotency_key="k1"
        )
        for _ in range(2)
    ]
    assert isinstance(said[0], Feedback)
    assert (said[0], said[0].score, said[0].turn) == (said[1], 1, turn.id)
    sessions = sessions_list.sync(client=client, policy=acme.policy.pk)
    assert sessions is not None
    assert not isinstance(sessions, Problem)
    assert [(one.id, one.turns) for one in sessions.results] == [(acme.session.pk, 2)]


def test_a_policy_is_made_changed_and_pointed(acme: Rows, client: AuthenticatedClient) -> None:
    made = policies_create.sync(client=client, body=NewPolicyRequest(name="coder"))
    assert isinstance(made, Policy)
    assert made.live_version == 0
    taken = policies_create.sync(client=client, body=NewPolicyRequest(name="coder"))
    assert isinstance(taken, Problem)
    assert not isinstance(taken.errors, Unset)
    assert (taken.code, [one.field for one in taken.errors]) == ("conflict", ["name"])
    warmer = policies_partial_update.sync(made.id, client=client, body=PolicyChangeRequest(temperature=1.5))
    assert isinstance(warmer, Policy)
    assert warmer.temperature == 1.5
    back = policies_point_create.sync(acme.policy.pk, client=client, body=PointerRequest(version=0))
    assert isinstance(back, Policy)
    assert back.live_version == 0


def test_a_run_is_asked_for_once_cancelled_and_resumed(acme: Rows, client: AuthenticatedClient) -> None:
    with tenant_scope(acme.tenant.pk):
        Sample.objects.filter(pk=acme.sample.pk).update(state=SampleState.READY, run=None, consumed_at=None)
    wish = NewRunRequest(policy=acme.policy.pk)
    runs = [runs_create.sync(client=client, body=wish, idempotency_key="k1") for _ in range(2)]
    run = runs[0]
    assert isinstance(run, Run)
    assert isinstance(runs[1], Run)
    assert (run.id, run.state) == (runs[1].id, "queued")
    ended = runs_cancel_create.sync(run.id, client=client)
    assert isinstance(ended, Run)
    assert ended.state == "cancelled"
    again = runs_resume_create.sync(run.id, client=client)
    assert isinstance(again, Run)
    assert again.state == "queued"


def test_cursors_walk_the_whole_list_once(acme: Rows, client: AuthenticatedClient) -> None:
    with system_scope("tests"):
        for number in range(5):
            PolicyRow.objects.create(tenant=acme.tenant, name=f"p{number}", base_model="tiny")
    seen: dict[UUID, str] = {}
    cursor: str | Unset = UNSET
    for _ in range(3):
        page = policies_list.sync(client=client, page_size=2, cursor=cursor)
        assert page is not None
        assert not isinstance(page, Problem)
        seen |= {one.id: one.name for one in page.results}
        following = parse_qs(urlsplit(str(page.next_ or "")).query).get("cursor")
        cursor = following[0] if following else UNSET
    assert list(seen.values()) == ["p4", "p3", "p2", "p1", "p0", "default"]
    assert cursor is UNSET
