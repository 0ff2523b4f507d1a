"""What people do on the pages, and what follows."""

import html
import re
import tracemalloc
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.http import StreamingHttpResponse
from django.test import AsyncClient
from django.utils.html import escape

from apps.accounts.models import Membership, Role, Tenant
from apps.accounts.pausing import pause_tenant, resume_tenant
from apps.adapters import store
from apps.adapters.models import Policy
from apps.conversations.models import Feedback
from apps.keys.models import ApiKey, Limit
from apps.keys.services import authenticate, create_key, revoke_key
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows
from tests.apps.dashboard.conftest import browser, member, text_of


def actions(rows: Rows) -> list[str]:
    with tenant_scope(rows.tenant.pk):
        return list(AuditEntry.objects.order_by("created_at").values_list("action", flat=True))


def test_a_key_is_shown_once_and_works(acme: Rows) -> None:
    client = browser(acme.user)
    page = client.post("/t/acme/keys", {"name": "laptop", "scopes": ["chat", "read"], "days": "30"})
    secret = re.search(r'class="secret">(at-[^<]+)<', page.content.decode())
    assert secret is not None
    assert authenticate(f"Bearer {secret[1]}").user_id == acme.user.pk
    assert secret[1].split("-", 2)[2] not in client.get("/t/acme/keys").content.decode()
    assert "key.create" in actions(acme)


def test_a_key_needs_a_name_and_a_scope(acme: Rows) -> None:
    page = browser(acme.user).post("/t/acme/keys", {"name": ""}).content.decode()
    assert page.count("this is empty. Fill it in.") == 2
    for named in ("Name: this is empty.", "It may: this is empty."):
        assert named in page
    with tenant_scope(acme.tenant.pk):
        assert ApiKey.objects.count() == 1


def test_a_key_is_rotated_and_revoked_by_who_may(acme: Rows) -> None:
    client, stranger = browser(acme.user), browser(member(acme.tenant, Role.MEMBER))
    path = f"/t/acme/keys/{acme.key.pk}"
    assert stranger.post(f"{path}/revoke").status_code == 404
    assert stranger.post(f"{path}/rotate", {"overlap": "0"}).status_code == 404
    assert 'class="secret">at-' in client.post(f"{path}/rotate", {"overlap": "3600"}).content.decode()
    assert client.post(f"{path}/revoke").status_code == 302
    with tenant_scope(acme.tenant.pk):
        assert ApiKey.objects.get(pk=acme.key.pk).revoked_at is not None
        assert ApiKey.objects.count() == 2


def test_a_revoked_key_is_changed_no_more(acme: Rows) -> None:
    client, path = browser(acme.user), f"/t/acme/keys/{acme.key.pk}"
    revoke_key(tenant_id=acme.tenant.pk, key_id=acme.key.pk, actor="user:x")
    assert client.get(f"{path}/limits").status_code == 404
    said = "The key is revoked for good. Make another under Keys."
    assert said in client.post(f"{path}/limits", {"concurrent": "1"}).content.decode()
    assert said in client.post(f"{path}/policies", {"all": "on"}, follow=True).content.decode()
    assert not {"limit.set", "key.policies"} & {*actions(acme)}


def test_what_is_revoked_rotated_or_taken_out_is_asked_before(acme: Rows) -> None:
    client, path = browser(acme.user), f"/t/acme/keys/{acme.key.pk}"
    rotate = client.get(f"{path}/rotate").content.decode()
    assert '<option value="86400" selected>in a day</option>' in rotate
    assert "Revoke <bdi>a key</bdi>?" in client.get(f"{path}/revoke").content.decode()
    guest = member(acme.tenant, Role.MEMBER)
    with tenant_scope(acme.tenant.pk):
        row = Membership.objects.get(user=guest)
    out = text_of(client, f"/t/acme/members/{row.pk}")
    assert f"Take {guest.email} out?" in out
    assert "Keys that work 0" in out
    with tenant_scope(acme.tenant.pk):  # looking changed nothing
        assert ApiKey.objects.get().revoked_at is None
        assert Membership.objects.filter(user=guest).exists()
    assert client.post(f"{path}/rotate").status_code == 404  # when the old one ends has to be said
    admin = browser(member(acme.tenant, Role.ADMIN))
    assert admin.get(f"{path}/rotate").status_code == 404
    assert admin.get(f"/t/acme/members/{row.pk}").status_code == 403
    assert client.post(f"{path}/revoke").status_code == 302
    assert client.get(f"{path}/revoke").status_code == 404
    assert client.get(f"{path}/rotate").status_code == 404


def test_a_keys_limits_are_set_by_who_manages_within_bounds(acme: Rows, settings: Any) -> None:
    settings.KEY_LIMITS = {"requests": 6000, "tokens": 0, "concurrent": 128}
    client, path = browser(acme.user), f"/t/acme/keys/{acme.key.pk}/limits"
    page = client.get(path).content.decode()
    assert "Requests a minute; empty: the default of 6,000, 0: no limit" in page
    assert re.search(r'name="requests_per_minute"[^>]* value="60"', page)
    wrong = client.post(path, {"requests_per_minute": "-1", "tokens_per_minute": "x"}).content.decode()
    assert "Requests a minute: at least 0. Give a larger number." in wrong
    assert "Tokens a minute, read and written: this is no whole number. Give one, such as 7." in wrong
    answer = client.post(path, {"requests_per_minute": "", "tokens_per_minute": "5000", "concurrent": "0"})
    assert answer["Location"] == "/t/acme/keys"
    assert "5000 tokens/min, any number of at once" in text_of(client, "/t/acme/keys")
    with tenant_scope(acme.tenant.pk):
        limit = Limit.objects.get(key=acme.key)
    assert (limit.requests_per_minute, limit.tokens_per_minute, limit.concurrent) == (None, 5000, 0)
    assert "limit.set" in actions(acme)
    theirs = browser(member(acme.tenant, Role.MEMBER))
    assert theirs.post(path, {"concurrent": "0"}).status_code == 403


def test_the_limits_of_all_keys_are_on_the_tenants_page(acme: Rows, settings: Any) -> None:
    settings.TENANT_LIMITS = {"requests": 12000, "tokens": 0, "concurrent": 256}
    client = browser(acme.user)
    with tenant_scope(acme.tenant.pk):
        Limit.objects.filter(key=None).delete()
    seen = text_of(client, "/t/acme/settings")
    assert "12,000 requests a minute, any number of tokens a minute, 256 requests at once. Change" in seen
    wrong = client.post("/t/acme/settings/limits", {"requests_per_minute": "12001", "concurrent": "0"})
    page = wrong.content.decode()
    assert "Requests a minute: at most 12,000. Give a smaller number." in page
    assert "Requests at once: at least 1. Give a larger number." in page
    done = client.post("/t/acme/settings/limits", {"requests_per_minute": "7", "tokens_per_minute": "0"})
    assert done["Location"] == "/t/acme/settings"
    with tenant_scope(acme.tenant.pk):
        limit = Limit.objects.get(key=None)
    assert (limit.requests_per_minute, limit.tokens_per_minute, limit.concurrent) == (7, 0, None)
    viewer = browser(member(acme.tenant, Role.VIEWER))
    assert "7 requests a minute" in text_of(viewer, "/t/acme/settings")
    assert viewer.get("/t/acme/settings/limits").status_code == 403


def test_who_manages_revokes_the_keys_of_others_and_never_gets_their_secret(acme: Rows) -> None:
    admin, path = browser(member(acme.tenant, Role.ADMIN)), f"/t/acme/keys/{acme.key.pk}"
    listed = admin.get("/t/acme/keys").content.decode()
    assert f"{path}/revoke" in listed
    assert f"{path}/rotate" not in listed
    assert admin.post(f"{path}/rotate", {"overlap": "604800"}).status_code == 302
    refused = admin.get("/t/acme/keys").content.decode()
    assert "A key is rotated by its own person alone" in refused
    assert 'class="secret"' not in refused
    with tenant_scope(acme.tenant.pk):
        assert ApiKey.objects.get() == acme.key
    assert "key.rotate" not in actions(acme)
    assert admin.post(f"{path}/revoke").status_code == 302
    with tenant_scope(acme.tenant.pk):
        assert ApiKey.objects.get().revoked_at is not None


def test_thumbs_and_a_correction_are_noted(acme: Rows) -> None:
    client, path = browser(acme.user), f"/t/acme/turns/{acme.turn.pk}/feedback"
    assert client.post(path, {"score": "1", "correction": "Shorter."}).status_code == 302
    with tenant_scope(acme.tenant.pk):
        last = Feedback.objects.order_by("-created_at")[0]
        assert (last.score, last.correction) == (1, "Shorter.")
    assert browser(member(acme.tenant, Role.ADMIN)).post(path, {"score": "1"}).status_code == 404


def test_the_last_owner_stays_on_the_page_too(acme: Rows) -> None:
    client = browser(acme.user)
    admin = member(acme.tenant, Role.ADMIN)
    with tenant_scope(acme.tenant.pk):
        mine, theirs = Membership.objects.get(user=acme.user), Membership.objects.get(user=admin)
    client.post(f"/t/acme/members/{mine.pk}", {"wish": "remove"})
    assert "a tenant keeps at least one owner" in text_of(client, "/t/acme/members")
    assert browser(admin).post(f"/t/acme/members/{mine.pk}", {"role": "viewer"}).status_code == 403
    client.post(f"/t/acme/members/{theirs.pk}", {"wish": "role", "role": "viewer"})
    with tenant_scope(acme.tenant.pk):
        assert Membership.objects.get(pk=theirs.pk).role == Role.VIEWER


def test_settings_switch_learning_off(acme: Rows) -> None:
    client = browser(acme.user)
    client.post("/t/acme/settings", {"name": "Acme & Sons"})
    path = f"/t/acme/settings/policies/{acme.policy.pk}"
    client.post(path, {"form": "answer", "temperature": "1.2"})
    wrong = client.post(path, {"form": "answer", "temperature": "9"}).content.decode()
    assert "Temperature where the client names none: at most 2. Give a smaller number." in wrong
    with system_scope("look"):
        tenant, policy = Tenant.objects.get(pk=acme.tenant.pk), Policy.objects.get(pk=acme.policy.pk)
    assert (tenant.name, tenant.training_enabled) == ("Acme & Sons", False)
    assert (policy.temperature, policy.training_enabled) == (1.2, False)


def test_a_run_is_cancelled_once(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        run = TrainingRun.objects.create(policy=acme.policy, trigger="threshold")
    client = browser(acme.user)
    path = f"/t/acme/runs/{run.pk}"
    assert 'hx-sse:connect="' in client.get(path).content.decode()
    client.post(f"{path}/cancel")
    client.post(f"{path}/cancel")
    assert "the run is cancelled" in text_of(client, path)
    with tenant_scope(acme.tenant.pk):
        assert TrainingRun.objects.get(pk=run.pk).state == RunState.CANCELLED
    assert actions(acme).count("run.cancel") == 1


def test_a_version_is_downloaded_as_a_peft_directory(acme: Rows, tmp_path: Path, settings: Any) -> None:
    settings.ADAPTER_STORE = tmp_path
    client, path = browser(acme.user), f"/t/acme/adapters/{acme.version.pk}"
    assert client.get(f"{path}/download").status_code == 404
    folder = store.absolute(acme.version.path)
    folder.mkdir(parents=True)
    weights = bytes(range(256)) * 20_000
    (folder / "adapter_config.json").write_text("{}")
    (folder / "adapter_model.safetensors").write_bytes(weights)
    answer = client.get(f"{path}/download")
    archive = zipfile.ZipFile(BytesIO(b"".join(answer)))
    assert archive.testzip() is None
    assert archive.namelist() == ["adapter_config.json", "adapter_model.safetensors"]
    assert archive.read("adapter_model.safetensors") == weights
    assert browser(member(acme.tenant, Role.MEMBER)).get(f"{path}/download").status_code == 403


@pytest.mark.django_db(transaction=True)
async def test_a_download_is_never_whole_in_memory(acme: Rows, tmp_path: Path, settings: Any) -> None:
    settings.ADAPTER_STORE = tmp_path
    folder = store.absolute(acme.version.path)
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text("{}")
    with (folder / "adapter_model.safetensors").open("wb") as file:
        file.truncate(64 << 20)
    client = AsyncClient()
    await client.aforce_login(acme.user)
    answer = await client.get(f"/t/acme/adapters/{acme.version.pk}/download")
    assert isinstance(answer, StreamingHttpResponse)

    tracemalloc.start()
    sizes = [len(piece) async for piece in answer]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert sum(sizes) > 64 << 20
    assert max(sizes) < 2 << 20
    assert most < 8 << 20


@pytest.mark.django_db(transaction=True)
async def test_a_runs_events_resume_where_they_were(acme: Rows) -> None:
    client = AsyncClient()
    await client.aforce_login(acme.user)
    path = f"/t/acme/runs/{acme.run.pk}/events"

    async def body(**headers: str) -> str:
        answer = await client.get(path, headers=headers)
        assert answer["Content-Type"] == "text/event-stream"
        return "".join([piece.decode() async for piece in answer.streaming_content])  # type: ignore[attr-defined]

    first = await body()
    mark = re.match(r"id: (\w+)\ndata: ", first)
    assert mark is not None
    assert "succeeded" in first
    assert first.endswith("event: over\ndata: .\n\n")
    assert await body(**{"Last-Event-ID": mark[1]}) == "event: over\ndata: .\n\n"


def test_a_key_is_limited_to_the_policies_that_are_ticked(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        coder = Policy.objects.create(name="coder", base_model="tiny")
    client, path = browser(acme.user), f"/t/acme/keys/{acme.key.pk}/policies"

    def named() -> tuple[bool, list[str]]:
        with tenant_scope(acme.tenant.pk):
            key = ApiKey.objects.get(pk=acme.key.pk)
            return key.some_policies, sorted(key.policies.values_list("policy__name", flat=True))

    client.post(path, {"policies": [str(coder.pk)]})
    assert named() == (True, ["coder"])
    client.post(path, {})
    assert "Tick the policies" in text_of(client, "/t/acme/keys")
    assert named() == (True, ["coder"])
    client.post(path, {"all": "on", "policies": [str(coder.pk)]})
    assert named() == (False, [])
    assert browser(member(acme.tenant, Role.MEMBER)).post(path, {"all": "on"}).status_code == 404

    form = {"name": "laptop", "scopes": ["chat"], "policies": [str(coder.pk)]}
    assert 'class="secret">at-' in client.post("/t/acme/keys", form).content.decode()
    refused = client.post("/t/acme/keys", {**form, "scopes": ["chat", "manage"]}).content.decode()
    assert "it cannot be limited to policies" in refused
    with tenant_scope(acme.tenant.pk):
        made = ApiKey.objects.exclude(pk=acme.key.pk).get()
        assert [one.policy_id for one in made.policies.all()] == [coder.pk]


def test_what_a_lowered_role_does_to_keys_is_said(acme: Rows) -> None:
    user = member(acme.tenant, Role.MEMBER)
    create_key(tenant=acme.tenant, user=user, name="laptop", scopes=("chat", "read"))
    create_key(tenant=acme.tenant, user=user, name="ci", scopes=("read",))
    with tenant_scope(acme.tenant.pk):
        row, key = Membership.objects.get(user=user), ApiKey.objects.get(name="laptop")
    client = browser(acme.user)
    struck = '<td data-label="May">read, <s>chat</s> <span class="soft">not as a viewer</span></td>'

    def change(role: str) -> str:
        page: Any = client.post(f"/t/acme/members/{row.pk}", {"wish": "role", "role": role}, follow=True)
        return html.unescape(page.content.decode())

    assert "Changed." in change("admin")
    assert struck not in client.get("/t/acme/keys").content.decode()
    assert "1 key of theirs has scopes that a viewer is not given: they do not count" in change("viewer")
    assert client.get("/t/acme/keys").content.decode().count("<s>") == 1
    for page in ("keys", f"keys/{key.pk}/revoke", f"keys/{key.pk}/limits"):
        assert struck[20:-5] in client.get(f"/t/acme/{page}").content.decode(), page
    said = change("member")
    assert "1 key of theirs has scopes that count again: revoke under Keys what should not work." in said
    assert "<s>" not in client.get("/t/acme/keys").content.decode()
    assert "count" not in change("admin").partition("Changed.")[2].partition("<table")[0]


def test_every_page_of_a_paused_tenant_says_so(acme: Rows) -> None:
    client = browser(acme.user)
    pages = ("", "sessions", "adapters", "runs", "drift", "keys", "members", "settings", "data", "playground")
    said = "This tenant is paused: <b>unpaid</b> bills"
    for page in pages:
        assert "This tenant is paused" not in text_of(client, f"/t/acme/{page}")
    pause_tenant(tenant_id=acme.tenant.pk, reason="<b>unpaid</b> bills", actor="user:1")
    for page in pages:
        assert escape(said) in text_of(client, f"/t/acme/{page}"), page
    with tenant_scope(acme.tenant.pk):
        Sample.objects.filter(pk=acme.sample.pk).update(state=SampleState.READY, run=None, consumed_at=None)
        runs = TrainingRun.objects.count()
    answer = client.post(f"/t/acme/policies/{acme.policy.pk}/train", follow=True).content.decode()
    first = text_of(client, "/t/acme/")
    assert "ask whoever runs this installation" in first
    assert not [offer for offer in ("curl", "Make a key", "New policy") if offer in first]
    assert escape("This tenant is paused: <b>unpaid</b> bills. Ask whoever runs this installation.") in answer
    with tenant_scope(acme.tenant.pk):
        assert TrainingRun.objects.count() == runs
    resume_tenant(tenant_id=acme.tenant.pk, reason="paid", actor="user:1")
    assert "This tenant is paused" not in text_of(client, "/t/acme/")
