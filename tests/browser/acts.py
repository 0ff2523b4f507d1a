"""Every act of the console, from where the console itself knows them, and a row for which each is offered."""

import datetime as dt
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.contrib import admin
from django.db.models import Model
from django.urls import reverse
from django.utils import timezone

from apps.accounts import mails
from apps.accounts.models import Mail, MailState, Tenant
from apps.alerts.models import WebhookEndpoint
from apps.console.admin.base import Act
from apps.judging.models import Judgement, JudgementState
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from kernel.tenancy import system_scope
from tests.apps.console.rows import fill


class Offered(NamedTuple):
    """An act of a model's page in the console."""

    model: type[Model]
    act: Act

    @property
    def route(self) -> str:
        """Return the name of the route of the model's acts."""
        return f"admin:{self.model._meta.app_label}_{self.model._meta.model_name}_act"

    @property
    def name(self) -> str:
        """Return what its picture is called."""
        return f"console-act-{self.model._meta.model_name}-{self.act.name}"

    def address(self) -> str:
        """Return the page that asks, of the newest row that offers the act."""
        with system_scope("look"):
            rows: Any = self.model._default_manager.order_by("-pk")
            row = next((row for row in rows if self.act.offered(row)), None)
        assert row is not None, f"{self.name}: no row offers it; let `rows_that_offer` make one"
        return reverse(self.route, args=[row.pk, self.act.name])


def acts() -> Iterator[Offered]:
    """Yield every act there is."""
    for model, page in admin.site._registry.items():
        for act in getattr(page, "acts", ()):
            yield Offered(model, act)


def rows_that_offer() -> None:
    """Let there be, beside a tenant that is well, one of which much has failed."""
    rows, now = fill("globex", text="in plain words"), timezone.now()
    with system_scope("test rows"):
        Tenant.objects.filter(pk=rows.tenant.pk).update(
            name="Globex Industries", paused_at=now, pause_reason="Unpaid since October"
        )
        TrainingRun.objects.create(
            tenant=rows.tenant, policy=rows.policy, state=RunState.QUEUED, trigger="threshold"
        )
        TrainingRun.objects.create(
            tenant=rows.tenant,
            policy=rows.policy,
            state=RunState.FAILED,
            trigger="threshold",
            reason="no space left on the trainer's disk",
            started_at=now - dt.timedelta(minutes=3),
            finished_at=now,
        )
        Sample.objects.filter(pk=rows.sample.pk).update(
            state=SampleState.DROPPED,
            reason="quarantined after 2 refused steps: the loss was not finite",
            refusals=2,
            run=None,
            consumed_at=None,
            staleness=None,
        )
        Judgement.objects.filter(turn=rows.turn).update(
            state=JudgementState.FAILED,
            reason="the judge answered 503 ten times",
            reward=None,
            settled_at=None,
        )
        WebhookEndpoint.objects.filter(tenant=rows.tenant).update(
            enabled=False, disabled_reason="it answered 410 for a week"
        )
        row = mails.post(
            kind="account/email/password_reset_key", to="ada@globex.example", subject="a", text="b"
        )
        Mail.objects.filter(pk=row.pk).update(
            state=MailState.DEAD, attempts=7, retries=6, reason="ConnectionRefusedError: no mail server"
        )
