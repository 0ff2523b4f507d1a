"""Ask for deletions, let workers do them, and see what is left."""

import uuid
from typing import Any

from apps.conversations.models import Feedback, Session, Turn, TurnState
from apps.governance.erasure.requests import request_erasure
from apps.governance.erasure.subjects import Meant
from apps.governance.models import Erasure, Subject
from apps.judging.models import Hint, Judgement, Vote
from apps.learning.accounts import books
from apps.learning.models import Sample, SampleState
from apps.memory.models import Evidence
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows
from workers.governance import erase

SAID = (Session, Turn, Sample, Judgement, Vote, Hint, Feedback, Evidence)


def asked(rows: Rows, subject: Subject, key: uuid.UUID | None = None) -> Erasure:
    """Ask for a deletion."""
    with tenant_scope(rows.tenant.pk):
        return request_erasure(tenant_id=rows.tenant.pk, meant=Meant(subject, key), actor="user:x")


def done(erasure: Erasure) -> Erasure:
    erase(tenant_id=str(erasure.tenant_id), erasure_id=str(erasure.pk))
    with system_scope("look"):
        return Erasure.objects.get(pk=erasure.pk)


def left(rows: Rows) -> dict[str, int]:
    """Return how many rows of what was said a tenant has."""
    with tenant_scope(rows.tenant.pk):
        return {model.__name__: model._default_manager.count() for model in SAID}


def agrees(rows: Rows) -> bool:
    with tenant_scope(rows.tenant.pk):
        return books().problems == []


def more(rows: Rows, turns: int, **values: Any) -> Session:
    """Add a session of failed turns, one after the other."""
    with tenant_scope(rows.tenant.pk):
        session = Session.objects.create(user=rows.user, policy=rows.policy, **values)
        parent = None
        for number in range(turns):
            parent = Turn.objects.create(
                session=session,
                policy=rows.policy,
                parent=parent,
                state=TurnState.FAILED,
                messages=[{"role": "user", "content": f"secret {number}"}],
                request_hash="0" * 64,
                body_sha256="0" * 64,
            )
            Sample.objects.create(
                policy=rows.policy, turn=parent, source="live", state=SampleState.INELIGIBLE, reason="failed"
            )
    return session
