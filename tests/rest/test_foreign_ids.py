"""Every route under /api, with every foreign id, in every role: not found or not allowed, and nothing changed."""

import json
import uuid
from typing import Any

import pytest
from django.apps import apps
from django.core import serializers
from django.urls import URLPattern

from apps.accounts.models import Invitation, Membership, Role
from apps.adapters.models import PointerMove
from apps.alerts.models import Delivery, WebhookEndpoint
from apps.conversations.models import Feedback
from apps.dashboard.models import SavedView
from apps.governance.models import Erasure, Export
from apps.judging.models import Judgement, OptOut, Rubric
from apps.keys.models import ApiKey
from apps.learning.drift.models import Crossing, DriftReading
from apps.learning.models import TrainingRun
from apps.memory.models import Preference
from config.urls_api import urlpatterns
from kernel.models import AuditEntry
from kernel.tenancy import system_scope
from tests.apps.console.rows import Rows, fill
from tests.rest.conftest import member

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
WITH_ID = sorted(
    {str(one.pattern) for one in urlpatterns if isinstance(one, URLPattern) and "<" in str(one.pattern)}
)
BODIES: dict[str, Any] = {
    "rotate": {"overlap_s": 0},
    "limits": {"concurrent": 1},
    "config": {"config": {}},
    "policies": {"policies": None},
    "memory": {"in_prompt": False},
    "point": {"version": 0},
    "feedback": {"score": 1},
}


def ids_of(rows: Rows) -> dict[str, uuid.UUID]:
    """Return an id of everything that a route may name."""
    with system_scope("look"):
        return {
            "members": Membership.objects.get(user=rows.user).pk,
            "invitations": Invitation.objects.get(tenant=rows.tenant).pk,
            "keys": ApiKey.objects.get(tenant=rows.tenant, name="a key").pk,
            "policies": rows.policy.pk,
            "versions": rows.version.pk,
            "sessions": rows.session.pk,
            "turns": rows.turn.pk,
            "feedback": Feedback.objects.filter(tenant=rows.tenant)[0].pk,
            "judgements": Judgement.objects.filter(tenant=rows.tenant)[0].pk,
            "samples": rows.sample.pk,
            "runs": TrainingRun.objects.filter(tenant=rows.tenant)[0].pk,
            "moves": PointerMove.objects.get(tenant=rows.tenant).pk,
            "drift-readings": DriftReading.objects.get(tenant=rows.tenant).pk,
            "drift-crossings": Crossing.objects.get(tenant=rows.tenant).pk,
            "memory": Preference.objects.get(tenant=rows.tenant).pk,
            "exports": Export.objects.filter(tenant=rows.tenant)[0].pk,
            "deletions": Erasure.objects.filter(tenant=rows.tenant)[0].pk,
            "rubrics": Rubric.objects.filter(tenant=rows.tenant)[0].pk,
            "opt-outs": OptOut.objects.filter(tenant=rows.tenant)[0].pk,
            "webhooks": WebhookEndpoint.objects.filter(tenant=rows.tenant)[0].pk,
            "deliveries": Delivery.objects.filter(tenant=rows.tenant).exclude(endpoint=None)[0].pk,
            "views": SavedView.objects.filter(tenant=rows.tenant)[0].pk,
        }


def everything(rows: Rows) -> str:
    """Return all rows of a tenant as text."""
    with system_scope("look"):
        return json.dumps(
            [
                serializers.serialize(
                    "json", model._default_manager.filter(tenant=rows.tenant).order_by("pk")
                )
                for model in apps.get_models()
                if any(field.name == "tenant" for field in model._meta.fields) and model is not AuditEntry
            ]
        )


@pytest.mark.parametrize("role", [*Role])
def test_a_foreign_id_is_nowhere_to_be_found(acme: Rows, role: Role) -> None:
    other = fill("globex")
    asking, ids, before = member(acme.tenant, role), ids_of(other), everything(other)
    assert len(WITH_ID) == 38
    for route in WITH_ID:
        kind = route.partition("/")[0]
        for foreign in (ids[kind], uuid.uuid4()):
            path = route.replace("<uuid:pk>", str(foreign))
            for method in METHODS:
                body = BODIES.get(route.rpartition("/")[2], {"role": "owner"})
                answer = asking.ask(method, path, None if method == "GET" else body)
                assert answer.status_code in {403, 404, 405}, (method, route, kind, answer.content)
                if method == "GET" and answer.status_code == 404 and role == Role.OWNER:
                    assert "globex" not in answer.content.decode()
    assert everything(other) == before


def test_an_id_in_a_body_or_a_filter_is_no_way_in(acme: Rows) -> None:
    other, asking = fill("globex"), member(acme.tenant, Role.OWNER)
    ids, before = ids_of(other), everything(other)
    for path, wish in (("runs", {}), ("memory", {"text": "Answer in French."})):
        refused = asking.ask("POST", path, wish | {"policy": str(ids["policies"])})
        assert (refused.status_code, refused.json()["code"]) == (404, "not_found"), path
    for wish in (
        {"session": str(ids["sessions"])},
        {"user": str(other.user.pk)},
        {"end_user": "end-globex"},
        {"everything": "globex"},
    ):
        refused = asking.ask("POST", "deletions", wish)
        assert (refused.status_code, refused.json()["code"]) == (404, "not_found"), wish
    for query in (
        f"sessions?policy={ids['policies']}",
        f"sessions?user={other.user.pk}",
        f"turns?session={ids['sessions']}",
        f"judgements?turn={ids['turns']}",
        f"samples?run={ids['runs']}",
        f"versions?policy={ids['policies']}",
        f"runs?policy={ids['policies']}",
        f"feedback?turn={ids['turns']}",
        f"moves?policy={ids['policies']}",
        f"drift-readings?policy={ids['policies']}",
        f"drift-readings?run={ids['runs']}",
        f"drift-crossings?policy={ids['policies']}",
        f"memory?policy={ids['policies']}",
        f"memory?user={other.user.pk}",
        "memory?end_user=end-globex",
    ):
        assert asking.get(query)["results"] == [], query
    assert everything(other) == before


def test_what_each_role_may_not_see(acme: Rows) -> None:
    viewer, someone = member(acme.tenant, Role.VIEWER), member(acme.tenant, Role.MEMBER)
    ids = ids_of(acme)
    for kind in (
        "sessions",
        "turns",
        "feedback",
        "judgements",
        "samples",
        "keys",
        "members",
        "invitations",
        "memory",
        "exports",
        "deletions",
        "views",
    ):
        assert viewer.ask("GET", kind).status_code == 403, kind
        assert viewer.ask("GET", f"{kind}/{ids[kind]}").status_code == 403, kind
    assert someone.ask("GET", "exports").status_code == 403
    assert someone.ask("GET", "invitations").status_code == 403
    assert someone.ask("POST", "exports").status_code == 403
    assert someone.ask("GET", f"deletions/{ids['deletions']}").status_code == 403
    assert someone.ask("POST", "deletions", {"user": str(someone.user.pk)}).status_code == 403
    for kind in ("sessions", "turns", "feedback", "judgements", "samples", "keys", "views", "memory"):
        assert someone.ask("GET", f"{kind}/{ids[kind]}").status_code == 404, kind
