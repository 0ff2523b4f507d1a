"""One request to every operation of /api, as an owner asks it, and what the views answer: the examples of the description.

What differs from run to run (ids, secrets, hashes, times) is put in the same place by something that does not.
"""

import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.accounts.models import Membership, Role
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows
from tests.rest.conftest import Api, member
from tests.rest.test_foreign_ids import ids_of

Ids = Mapping[str, uuid.UUID]

NO_JSON = {"exports_download_retrieve"}
"""Operations whose answer is a file."""
_MOMENT = "2026-01-31T09:00:00Z"
_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_LEVELLED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)"), _MOMENT),
    (re.compile(r"\bp[0-9a-f]{8}-v(\d+)-[0-9a-f]{8}\b"), r"p5c1e88aa-v\1-9d2b60f4"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "9d2b60f4" * 8),
    (re.compile(r"\bat-[0-9A-Za-z]{16}-[0-9A-Za-z_-]+"), "at-3f7c21d09be84a65-the-secret-is-shown-once"),
    (re.compile(r"\bat-[0-9A-Za-z]{16}\b"), "at-3f7c21d09be84a65"),
    (re.compile(r"\bkey:[0-9A-Za-z]{16}\b"), "key:3f7c21d09be84a65"),
    (re.compile(r"\bwhsec_[0-9A-Za-z+/=_-]+"), "whsec_dGhlIHNlY3JldCBpcyBzaG93biBvbmNl"),
    (re.compile(r'("public_id": ?")[0-9A-Za-z]{16}'), r"\g<1>3f7c21d09be84a65"),
)


@dataclass(frozen=True, slots=True)
class Wish:
    """A request that changes something: what of (a kind of `ids_of`, or an operation that made it), and its body."""

    operation: str
    of: str = ""
    body: Callable[[Ids], Any] | None = None


def _said(**body: Any) -> Callable[[Ids], Any]:
    return lambda _: body


WISHES = (
    Wish("tenant_partial_update", body=_said(name="Acme")),
    Wish("tenant_limits_update", body=_said(requests_per_minute=600, concurrent=32)),
    Wish("judging_partial_update", body=_said(votes=3, temperature=0.6)),
    Wish("policies_create", body=_said(name="coder")),
    Wish("policies_partial_update", "policies", _said(temperature=0.7)),
    Wish("policies_config_update", "policies", _said(preset="gentle")),
    Wish("policies_config_partial_update", "policies", _said(config={"lr": 0.0001})),
    Wish("policies_judging_partial_update", "policies", _said(votes=5)),
    Wish("policies_memory_partial_update", "policies", _said(budget_tokens=200, shadow=True)),
    Wish("policies_point_create", "policies", _said(version=0, reason="its answers were too long")),
    Wish("rubrics_create", body=_said(text="Good is what answers the question in a sentence or two.")),
    Wish("turns_feedback_create", "turns", _said(score=-1, correction="One sentence is enough.")),
    Wish("runs_create", body=lambda ids: {"policy": str(ids["policies"])}),
    Wish("runs_cancel_create", "runs_create"),
    Wish("runs_resume_create", "runs_create"),
    Wish("memory_create", body=lambda ids: {"policy": str(ids["policies"]), "text": "Answer in French."}),
    Wish("memory_partial_update", "memory_create", _said(text="Answer in German.", pinned=True)),
    Wish("memory_destroy", "memory_create"),
    Wish(
        "views_create",
        body=lambda ids: {
            "name": "unhappy today",
            "filters": {"policy": str(ids["policies"]), "judged": "bad", "within": "1d"},
        },
    ),
    Wish("views_partial_update", "views_create", _said(shared=True)),
    Wish("views_destroy", "views_create"),
    Wish("keys_create", body=_said(name="laptop", scopes=["chat"])),
    Wish("keys_limits_update", "keys", _said(requests_per_minute=60, tokens_per_minute=100000, concurrent=4)),
    Wish("keys_policies_update", "keys", lambda ids: {"policies": [str(ids["policies"])]}),
    Wish("keys_rotate_create", "keys", _said(overlap_s=3600)),
    Wish("keys_revoke_create", "keys"),
    Wish("invitations_create", body=_said(email="somebody@example.org", role="member")),
    Wish("invitations_destroy", "invitations_create"),
    Wish("members_partial_update", "somebody", _said(role="member")),
    Wish("members_destroy", "somebody"),
    Wish("opt_outs_create", body=_said(end_user="end-acme")),
    Wish("opt_outs_destroy", "opt_outs_create"),
    Wish("webhooks_create", body=_said(url="https://example.org/attune", events=["version.live"])),
    Wish("webhooks_partial_update", "webhooks_create", _said(events=["version.live", "run.failed"])),
    Wish("webhooks_test_create", "webhooks_create"),
    Wish("webhooks_rotate_create", "webhooks_create"),
    Wish("webhooks_destroy", "webhooks_create"),
    Wish("deliveries_replay_create", "deliveries"),
    Wish("exports_create"),
    Wish("exports_destroy", "exports_create"),
    Wish("deletions_create", body=lambda ids: {"session": str(ids["sessions"])}),
)


@dataclass
class Recorder:
    """Asks, and keeps what was asked and answered by the name of the operation."""

    described: Mapping[str, Any]
    asking: Api
    ids: dict[str, uuid.UUID]
    kept: dict[str, Any] = field(default_factory=dict)

    def ask(self, operation: str, of: str, body: Any) -> None:
        """Ask once; the answer is a success or the example would be none."""
        method, path = self._where(operation)
        row = self.ids.get(of)
        answer = self.asking.ask(
            method.upper(), path.removeprefix("/api/").replace("{id}", str(row or "")), body
        )
        assert 200 <= answer.status_code < 300, (operation, answer.status_code, answer.content)
        example: dict[str, Any] = {"status": str(answer.status_code)}
        if "{id}" in path:
            example["id"] = str(row)
        if body is not None:
            example["request"] = body
        if answer.content:
            example["response"] = _short(answer.json())
            if made := _id_in(answer.json()):
                self.ids[operation] = uuid.UUID(made)
        self.kept[operation] = example

    def _where(self, operation: str) -> tuple[str, str]:
        return next(
            (method, path)
            for path, methods in self.described["paths"].items()
            for method, one in methods.items()
            if one["operationId"] == operation
        )


def record(described: Mapping[str, Any], rows: Rows, asking: Api) -> dict[str, Any]:
    """Return {operation: {status, id, request, response}} of every operation that is described."""
    ids = dict(ids_of(rows))
    somebody = member(rows.tenant, Role.VIEWER)
    with tenant_scope(rows.tenant.pk):
        ids["somebody"] = Membership.objects.get(user=somebody.user).pk
    recorder = Recorder(described, asking, ids)
    for path, methods in described["paths"].items():
        operation = methods.get("get", {}).get("operationId")
        if operation is not None and operation not in NO_JSON:
            recorder.ask(operation, path.split("/")[2], None)
    with tenant_scope(rows.tenant.pk):
        Sample.objects.filter(pk=rows.sample.pk).update(state=SampleState.READY, run=None, consumed_at=None)
    for wish in WISHES:
        recorder.ask(wish.operation, wish.of, wish.body(ids) if wish.body else None)
    with tenant_scope(rows.tenant.pk):
        assert TrainingRun.objects.filter(state=RunState.QUEUED).count() == 1
    levelled: dict[str, Any] = json.loads(_levelled(json.dumps(recorder.kept, ensure_ascii=False)))
    return dict(sorted(levelled.items()))


def _short(answer: Any) -> Any:
    """Return an answer whose page holds one row."""
    if isinstance(answer, list):
        return answer[:1]
    if "results" in answer:
        return {**answer, "next": None, "previous": None, "results": answer["results"][:1]}
    return answer


def _id_in(answer: Any) -> str | None:
    """Return the id of what an answer shows: its own, or that of what came with a secret."""
    if not isinstance(answer, dict):
        return None
    inner = next((one for one in answer.values() if isinstance(one, dict) and "id" in one), answer)
    found: str | None = inner.get("id") if "id" not in answer else answer["id"]
    return found


def _levelled(text: str) -> str:
    """Return text with the same ids, hashes, secrets and times in each run."""
    seen: dict[str, str] = {}
    text = _ID.sub(
        lambda found: seen.setdefault(
            found[0], f"0199a3f0-5c1e-7{len(seen):03x}-9d2b-60f4c8a1e{len(seen):03x}"
        ),
        text,
    )
    for pattern, words in _LEVELLED:
        text = pattern.sub(words, text)
    return text
