"""What operators may do: after a confirmation, audited, and nobody else."""

import json
import re
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from apps.accounts import mails
from apps.accounts.models import Mail, User
from apps.adapters.models import PointerMove, Policy
from apps.alerts.models import Delivery, WebhookEndpoint
from apps.engines.models import DesiredAdapter, Engine, LoadedAdapter, LoadState
from apps.keys.models import Limit
from apps.keys.services import set_limit
from apps.keys.tenant_limit import set_own_limit
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from kernel.models import AuditEntry, OutboxMessage
from kernel.tenancy import system_scope
from tests.apps.console.rows import Rows

pytestmark = pytest.mark.usefixtures("everything")
WHY = {"reason": "because I say so"}


def act_url(row: object, name: str) -> str:
    opts = type(row)._meta  # type: ignore[attr-defined]
    return reverse(f"admin:{opts.app_label}_{opts.model_name}_act", args=[row.pk, name])  # type: ignore[attr-defined]


def acts_of(user: User) -> list[tuple[str, dict[str, str]]]:
    entries = AuditEntry.objects.filter(actor=f"user:{user.pk}").order_by("id")
    return [(entry.action, entry.detail) for entry in entries]


def prove(version: object, store: Path, *, probe: list[dict[str, object]]) -> None:
    """Give a version files and let every ready engine have answered with it."""
    folder = store / version.path  # type: ignore[attr-defined]
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"probe": probe}))
    DesiredAdapter.objects.filter(served_name=version.served_name).delete()  # type: ignore[attr-defined]
    desired = DesiredAdapter.objects.create(
        tenant_id=version.tenant_id,  # type: ignore[attr-defined]
        served_name=version.served_name,  # type: ignore[attr-defined]
        path=str(folder.resolve()),
        sha256=version.sha256,  # type: ignore[attr-defined]
        rank=16,
        probe=probe,
    )
    for engine in Engine.objects.all():
        LoadedAdapter.objects.create(
            tenant_id=desired.tenant_id, engine=engine, adapter=desired, state=LoadState.PROBED
        )


def wait(acme: Rows, **fields: object) -> None:
    """Let a sample wait (or, with `fields`, stand otherwise)."""
    free = {"state": SampleState.READY, "run": None, "consumed_at": None, "staleness": None, **fields}
    Sample.objects.filter(pk=acme.sample.pk).update(**free)


def test_retraining_is_neither_offered_nor_accepted_while_no_sample_waits(
    acme: Rows, console: Client, boss: User
) -> None:
    page = reverse("admin:adapters_policy_change", args=[acme.policy.pk])
    assert "/act/retrain/" not in console.get(page).content.decode()
    refused = console.post(act_url(acme.policy, "retrain"), WHY, follow=True).content.decode()
    assert "not done. No sample of default waits: there is nothing to learn." in refused
    assert TrainingRun.objects.count() == 1
    assert [action for action, _ in acts_of(boss)] == ["console.retrain"]
    wait(acme)
    assert "/act/retrain/" in console.get(page).content.decode()


def test_a_cancelled_run_is_resumed(acme: Rows, console: Client, boss: User) -> None:
    wait(acme)
    console.post(act_url(acme.policy, "retrain"), WHY)
    run = TrainingRun.objects.get(state=RunState.QUEUED)
    console.post(act_url(run, "cancel"), WHY)
    done = console.post(act_url(run, "resume"), WHY, follow=True)
    run.refresh_from_db()
    assert run.state == RunState.QUEUED
    assert "it is queued; a trainer takes it in its turn." in done.content.decode()
    assert [action for action, _ in acts_of(boss)][-2:] == ["run.resume", "console.resume"]


def test_samples_that_were_set_aside_are_replayed(acme: Rows, console: Client, boss: User) -> None:
    page = reverse("admin:adapters_policy_change", args=[acme.policy.pk])
    assert "/act/replay/" not in console.get(page).content.decode()
    wait(acme, state=SampleState.DROPPED, reason="quarantined after 2 refused steps: x", refusals=2)
    assert "/act/replay/" in console.get(page).content.decode()
    done = console.post(act_url(acme.policy, "replay"), WHY, follow=True)
    assert "1 samples wait again." in done.content.decode()
    acme.sample.refresh_from_db()
    assert (acme.sample.state, acme.sample.refusals, acme.sample.reason) == ("ready", 0, "")
    assert [action for action, _ in acts_of(boss)] == ["samples.replay", "console.replay"]


def test_retraining_is_asked_for_confirmed_and_audited(acme: Rows, console: Client, boss: User) -> None:
    wait(acme)
    url = act_url(acme.policy, "retrain")
    asked = console.get(url)
    assert asked.status_code == 200
    assert "Trigger retraining" in asked.content.decode()
    assert console.post(url, {"reason": ""}).status_code == 200
    assert TrainingRun.objects.count() == 1
    assert acts_of(boss) == []

    done = console.post(url, WHY, follow=True)

    run = TrainingRun.objects.get(state=RunState.QUEUED)
    assert (run.policy_id, run.tenant_id, run.trigger) == (
        acme.policy.pk,
        acme.tenant.pk,
        f"operator:{boss.pk}",
    )
    assert (
        OutboxMessage.objects.filter(task="workers.training.train", kwargs__run_id=str(run.pk)).count() == 1
    )
    said = f"run …{str(run.pk)[-8:]} is queued; the trainer takes it next."
    assert f"Trigger retraining: {said}" in done.content.decode()
    assert [action for action, _ in acts_of(boss)] == ["run.request", "console.retrain"]
    assert acts_of(boss)[1][1] == {"reason": "because I say so", "outcome": said}


def test_a_second_retraining_is_refused_in_words(acme: Rows, console: Client, boss: User) -> None:
    wait(acme)
    url = act_url(acme.policy, "retrain")
    console.post(url, WHY)
    refused = console.post(url, WHY, follow=True).content.decode()
    assert "Trigger retraining: not done. The policy default has a run under way." in refused
    assert TrainingRun.objects.filter(state=RunState.QUEUED).count() == 1
    assert [action for action, _ in acts_of(boss)] == ["run.request", "console.retrain", "console.retrain"]


def test_a_queued_run_is_cancelled(acme: Rows, console: Client, boss: User) -> None:
    wait(acme)
    console.post(act_url(acme.policy, "retrain"), WHY)
    run = TrainingRun.objects.get(state=RunState.QUEUED)
    done = console.post(act_url(run, "cancel"), WHY, follow=True)
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
    assert "it ends without a version" in done.content.decode()
    assert [action for action, _ in acts_of(boss)][2:] == ["run.cancel", "console.cancel"]


def test_a_policy_goes_back_to_the_bare_base(acme: Rows, console: Client, boss: User) -> None:
    done = console.post(act_url(acme.policy, "to-base"), WHY, follow=True)
    policy = Policy.objects.get(pk=acme.policy.pk)
    assert policy.live_id is None
    assert "default answers from the bare base now." in done.content.decode()
    move = PointerMove.objects.order_by("-id")[0]
    assert (move.from_version_id, move.to_version_id) == (acme.version.pk, None)
    assert (move.actor, move.reason) == (f"user:{boss.pk}", "because I say so")
    assert [action for action, _ in acts_of(boss)] == ["policy.point", "console.to-base"]


def test_an_older_version_is_made_live(
    acme: Rows, console: Client, boss: User, tmp_path: Path, settings: Settings
) -> None:
    settings.ADAPTER_STORE = tmp_path
    prove(acme.older, tmp_path, probe=[{"ids": [1, 2], "logprobs": [-1.0], "base_logprobs": [-2.0]}])
    done = console.post(act_url(acme.older, "make-live"), WHY, follow=True)
    assert "Make live: default answers from version 1 now." in done.content.decode()
    assert Policy.objects.get(pk=acme.policy.pk).live_id == acme.older.pk
    assert [action for action, _ in acts_of(boss)] == ["policy.point", "console.make-live"]


def test_a_version_whose_files_are_gone_stays_dark(
    acme: Rows, console: Client, boss: User, tmp_path: Path, settings: Settings
) -> None:
    settings.ADAPTER_STORE = tmp_path
    done = console.post(act_url(acme.older, "make-live"), WHY, follow=True)
    assert "Make live: not done." in done.content.decode()
    assert Policy.objects.get(pk=acme.policy.pk).live_id == acme.version.pk
    assert PointerMove.objects.count() == 1
    assert [action for action, _ in acts_of(boss)] == ["console.make-live"]


def test_a_key_is_revoked(acme: Rows, console: Client, boss: User) -> None:
    done = console.post(act_url(acme.key, "revoke"), WHY, follow=True)
    acme.key.refresh_from_db()
    assert acme.key.revoked_at is not None
    page = done.content.decode()
    assert "answers no request from now on." in page
    assert "/act/revoke/" not in page
    assert [action for action, _ in acts_of(boss)] == ["key.revoke", "console.revoke"]


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("policy", "retrain"),
        ("policy", "to-base"),
        ("older", "make-live"),
        ("key", "revoke"),
        ("run", "cancel"),
        ("run", "resume"),
        ("policy", "replay"),
    ],
)
def test_nobody_else_can(acme: Rows, row: str, name: str) -> None:
    url = act_url(getattr(acme, row), name)
    member = Client()
    member.force_login(acme.user)
    before = AuditEntry.objects.count()
    for visitor in (Client(), member):
        for answer in (visitor.get(url), visitor.post(url, WHY)):
            assert answer.status_code == 302
            assert answer["Location"].startswith("/console/login/")
    assert TrainingRun.objects.count() == 1
    assert Policy.objects.get(pk=acme.policy.pk).live_id == acme.version.pk
    acme.key.refresh_from_db()
    assert acme.key.revoked_at is None
    assert AuditEntry.objects.count() == before


def test_an_act_needs_the_token_of_the_page_that_asked(acme: Rows, boss: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(boss)
    assert strict.post(act_url(acme.policy, "retrain"), WHY).status_code == 403
    assert TrainingRun.objects.count() == 1


def test_an_act_that_does_not_exist_is_404(acme: Rows, console: Client) -> None:
    assert console.get(act_url(acme.policy, "erase")).status_code == 404


def test_a_dead_delivery_is_replayed_and_an_endpoint_switched_off_and_on(
    acme: Rows, console: Client, boss: User
) -> None:
    dead = Delivery.objects.get(state="dead")
    done = console.post(act_url(dead, "replay"), WHY, follow=True)
    assert "Replay the delivery: it is tried again now, from the start." in done.content.decode()
    dead.refresh_from_db()
    assert (dead.state, dead.retries) == ("pending", 0)
    again = console.post(act_url(dead, "replay"), WHY, follow=True).content.decode()
    assert "Replay the delivery: not done. The delivery is pending, only dead ones are replayed." in again

    endpoint = WebhookEndpoint.objects.get()
    console.post(act_url(endpoint, "switch-off"), WHY)
    endpoint.refresh_from_db()
    assert (endpoint.enabled, endpoint.disabled_reason) == (False, "because I say so")
    console.post(act_url(endpoint, "switch-on"), WHY)
    endpoint.refresh_from_db()
    assert (endpoint.enabled, endpoint.disabled_reason) == (True, "")
    assert [action for action, _ in acts_of(boss) if not action.startswith("console.")] == [
        "delivery.replay",
        "webhook.disable",
        "webhook.enable",
    ]


def test_a_dead_mail_is_replayed_and_one_that_has_ended_is_not(
    acme: Rows, console: Client, boss: User
) -> None:
    del acme
    row = mails.post(kind="account/email/password_reset_key", to="ada@example.org", subject="a", text="b")
    page = reverse("admin:accounts_mail_change", args=[row.pk])
    assert "/act/replay/" not in console.get(page).content.decode()
    Mail.objects.filter(pk=row.pk).update(state="dead", attempts=7, retries=6, reason="no such host")
    assert "/act/replay/" in console.get(page).content.decode()
    asked = console.get(act_url(row, "replay")).content.decode()
    assert (
        "The mail to ada@example.org (password reset key) is sent again from the start, with all its tries"
        in asked
    )
    assert acts_of(boss) == []
    done = console.post(act_url(row, "replay"), WHY, follow=True).content.decode()
    assert "Replay the mail: it is tried again now, from the start." in done
    assert "/act/replay/" not in done
    row.refresh_from_db()
    assert (row.state, row.attempts, row.retries, row.reason) == ("pending", 7, 0, "")
    again = console.post(act_url(row, "replay"), WHY, follow=True).content.decode()
    assert "Replay the mail: not done. The mail is pending, only dead ones are replayed." in again

    Mail.objects.filter(pk=row.pk).update(state="dead", words_until=timezone.now())
    assert "/act/replay/" not in console.get(page).content.decode()
    ended = console.post(act_url(row, "replay"), WHY, follow=True).content.decode()
    assert "Replay the mail: not done. What it said has ended; the person asks for another." in ended
    assert [action for action, _ in acts_of(boss)] == [
        *("mail.replay", "console.replay", "console.replay", "console.replay"),
    ]


def test_nobody_replays_a_mail_without_a_second_factor(
    acme: Rows, console: Client, boss: User, settings: Settings
) -> None:
    row = mails.post(kind="test", to="ada@example.org", subject="a", text="b")
    Mail.objects.filter(pk=row.pk).update(state="dead")
    member = Client()
    member.force_login(acme.user)
    assert member.post(act_url(row, "replay"), WHY)["Location"].startswith("/console/login/")
    settings.CONSOLE_REQUIRES_MFA = True
    assert console.post(act_url(row, "replay"), WHY)["Location"] == "/accounts/2fa/"
    row.refresh_from_db()
    assert row.state == "dead"
    assert acts_of(boss) == []


def test_training_is_paused_and_resumed_from_the_policys_page(
    acme: Rows, console: Client, boss: User
) -> None:
    page = reverse("admin:adapters_policy_change", args=[acme.policy.pk])
    before = console.get(page).content.decode()
    assert act_url(acme.policy, "resume-training") not in before
    assert "the effective sample size" in before  # the gauges, with their line
    assert 'class="at-spark"' in before
    done = console.post(act_url(acme.policy, "pause-training"), WHY, follow=True).content.decode()
    assert "Pause training: default makes no more steps until somebody resumes it" in done
    assert "because I say so" in done
    again = console.post(act_url(acme.policy, "pause-training"), WHY, follow=True).content.decode()
    assert "not done. Training of default is paused already" in again
    console.post(act_url(acme.policy, "resume-training"), WHY)
    assert act_url(acme.policy, "resume-training") not in console.get(page).content.decode()
    assert [action for action, _ in acts_of(boss) if not action.startswith("console.")] == [
        "policy.pause",
        "policy.resume",
    ]


def test_a_tenant_is_paused_and_resumed(acme: Rows, console: Client, boss: User) -> None:
    page = reverse("admin:accounts_tenant_change", args=[acme.tenant.pk])
    assert "/act/pause/" in console.get(page).content.decode()
    asked = console.get(act_url(acme.tenant, "pause")).content.decode()
    assert "Every request of acme to /v1 is refused from now on" in asked
    assert "people read it, and so does whoever calls with its keys" in asked
    assert not console.post(act_url(acme.tenant, "pause"), {"reason": " "}).has_header("Location")
    acme.tenant.refresh_from_db()
    assert not acme.tenant.is_paused

    console.post(act_url(acme.tenant, "pause"), {"reason": "unpaid bills"})
    acme.tenant.refresh_from_db()
    assert acme.tenant.pause_reason == "unpaid bills"
    shown = console.get(page).content.decode()
    assert "/act/pause/" not in shown
    assert "unpaid bills" in shown
    again = console.post(act_url(acme.tenant, "pause"), WHY, follow=True).content.decode()
    assert "not done. The tenant acme is paused already: unpaid bills. Resume it first" in again

    assert "acme is paused: unpaid bills." in console.get(act_url(acme.tenant, "resume")).content.decode()
    console.post(act_url(acme.tenant, "resume"), {"reason": "paid"})
    acme.tenant.refresh_from_db()
    assert not acme.tenant.is_paused
    assert [action for action, _ in acts_of(boss)] == [
        *("tenant.pause", "console.pause", "console.pause", "tenant.resume", "console.resume"),
    ]


def test_only_operators_pause_a_tenant(acme: Rows) -> None:
    client = Client()
    client.force_login(acme.user)
    assert client.post(act_url(acme.tenant, "pause"), WHY).status_code in (302, 403)
    acme.tenant.refresh_from_db()
    assert not acme.tenant.is_paused


def test_an_operator_sets_what_a_tenant_may_not_set_itself(
    acme: Rows, console: Client, settings: Settings
) -> None:
    settings.TENANT_LIMITS = {"requests": 100, "tokens": 0, "concurrent": 8}
    with system_scope("tests"):
        Limit.objects.filter(tenant=acme.tenant, key=None).delete()
    asked = console.get(act_url(acme.tenant, "limits")).content.decode()
    assert (
        "together may ask 100 requests a minute, any number of tokens a minute, 8 requests at once." in asked
    )
    wrong = console.post(act_url(acme.tenant, "limits"), {**WHY, "concurrent": "-1"}).content.decode()
    assert "Requests at once: at least 0. Give a larger number." in wrong
    console.post(act_url(acme.tenant, "limits"), {**WHY, "requests_per_minute": "5000", "concurrent": "0"})
    with system_scope("tests"):
        limit = Limit.objects.get(tenant=acme.tenant, key=None)
        assert (limit.requests_per_minute, limit.tokens_per_minute, limit.concurrent) == (5000, None, 0)
        did = set(AuditEntry.objects.filter(tenant_id=acme.tenant.pk).values_list("action", flat=True))
    assert {"limit.set", "console.limits"} <= did


def test_who_changes_one_limit_leaves_the_others(acme: Rows, console: Client) -> None:
    set_limit(tenant_id=acme.tenant.pk, key_id=None, actor="test", requests_per_minute=60, concurrent=0)
    form = console.get(act_url(acme.tenant, "limits")).context["form"]
    assert list(form.fields) == ["requests_per_minute", "tokens_per_minute", "concurrent", "reason"]
    said = {name: form[name].value() for name in form.fields}
    assert said == {
        "requests_per_minute": 60,
        "tokens_per_minute": None,
        "concurrent": 0,
        "reason": None,
    }


def test_the_page_of_a_tenant_says_which_limits_hold_and_who_says_so(
    acme: Rows, console: Client, settings: Settings
) -> None:
    settings.TENANT_LIMITS = {"requests": 100, "tokens": 0, "concurrent": 8}
    Limit.objects.filter(tenant=acme.tenant, key=None).delete()
    page = reverse("admin:accounts_tenant_change", args=[acme.tenant.pk])

    def shown() -> list[list[str]]:
        table = console.get(page).content.decode().partition("What all its keys together may ask")[2]
        body = table.partition("<tbody>")[2].partition("</tbody>")[0]
        rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
        return [re.findall(r">([^<>]+)</(?:td|strong)>", row) for row in rows]

    assert shown() == [
        ["Requests a minute", "100", "-", "-", "100"],
        ["Tokens a minute, read and written", "no limit", "-", "-", "no limit"],
        ["Requests at once", "8", "-", "-", "8"],
    ]
    set_limit(tenant_id=acme.tenant.pk, key_id=None, actor="test", requests_per_minute=5000, concurrent=0)
    own = {"requests_per_minute": 700, "tokens_per_minute": 12_000}
    set_own_limit(tenant_id=acme.tenant.pk, actor="test", numbers=own)
    assert shown() == [
        ["Requests a minute", "100", "5,000", "700", "700"],
        ["Tokens a minute, read and written", "no limit", "-", "12,000", "12,000"],
        ["Requests at once", "8", "no limit", "-", "no limit"],
    ]
    set_limit(tenant_id=acme.tenant.pk, key_id=None, actor="test", requests_per_minute=60)
    assert [row[-1] for row in shown()] == ["60", "12,000", "8"]
