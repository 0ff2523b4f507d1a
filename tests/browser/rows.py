"""A tenant that looks like one in use: a week of turns, judged, trained on."""

import datetime as dt
import math
import random
import uuid

from django.db import transaction
from django.utils import timezone

from apps.adapters.models import AdapterVersion, GateResult, PointerMove, VersionState
from apps.conversations.models import Session, Turn, TurnState
from apps.governance.models import Erasure, Export, ExportState, Subject
from apps.learning.drift import crossings
from apps.learning.drift.bounds import BY_MEASURE
from apps.learning.drift.models import DriftReading
from apps.learning.models import RunState, Sample, SampleState, TrainingRun
from apps.memory.models import Evidence, Preference, PreferenceState
from apps.memory.services import add_preference
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill

QUESTIONS = (
    "How do I boil an egg?",
    "What is a good name for a cat?",
    "Explain tides to me.",
    "Which knot holds a hammock?",
    "How long does bread keep?",
)


def lived_in(slug: str = "acme", *, days: int = 6, turns: int = 240) -> Rows:
    """Make a tenant with `turns` turns over some days and a version for each 40 of them."""
    rows = fill(slug, text="in plain words")
    chance, now = random.Random(7), timezone.now()
    with system_scope("test rows"):
        parent = rows.version
        GateResult.objects.filter(version=parent).delete()
        _checked(rows, parent, 0.2)
        for number in range(turns):
            when = now - dt.timedelta(days=days) * (1 - number / turns)
            if number % 40 == 0:
                parent = _version(rows, parent, when, number / turns)
            if number % 4 == 0:
                session = Session.objects.create(
                    tenant=rows.tenant, user=rows.user, policy=rows.policy, last_turn_at=when
                )
                Session.objects.filter(pk=session.pk).update(created_at=when)
            failed = chance.random() < 0.02
            turn = Turn.objects.create(
                tenant=rows.tenant,
                session=session,
                policy=rows.policy,
                version=parent,
                state=TurnState.FAILED if failed else TurnState.COMPLETE,
                messages=[{"role": "user", "content": chance.choice(QUESTIONS)}],
                reply=None if failed else {"role": "assistant", "content": "Seven minutes in boiling water."},
                request_hash="0" * 64,
                body_sha256=uuid.uuid4().hex * 2,
                usage={"prompt_tokens": 40, "completion_tokens": chance.randint(10, 90)},
                first_token_ms=None if failed else chance.gauss(420, 60) + 80 * math.sin(number / 20),
                latency_ms=None if failed else chance.gauss(2100, 300),
                completed_at=None if failed else when,
            )
            Turn.objects.filter(pk=turn.pk).update(created_at=when)
            if not failed:
                Sample.objects.create(
                    tenant=rows.tenant,
                    policy=rows.policy,
                    turn=turn,
                    source="live",
                    state=SampleState.READY,
                    reward=1.0 if chance.random() < 0.2 + 0.7 * number / turns else -1.0,
                    version=parent,
                )
    _remembered(rows, parent)
    _drifting(rows)
    _taken_along(rows)
    return rows


def _taken_along(rows: Rows) -> None:
    """Let archives and deletions be done and under way."""
    now = timezone.now()
    with tenant_scope(rows.tenant.pk):
        Export.objects.create(
            actor=f"user:{rows.user.pk}",
            state=ExportState.READY,
            available_at=now,
            rows_done=1_284,
            rows_total=1_284,
            size=412_340,
            sha256="0" * 64,
            snapshot_at=now,
            finished_at=now,
            expires_at=now + dt.timedelta(days=3),
        )
        Export.objects.create(
            actor=f"user:{rows.user.pk}",
            state=ExportState.RUNNING,
            available_at=now,
            lease_until=now + dt.timedelta(minutes=1),
            part="turns.jsonl",
            rows_done=410,
            rows_total=1_290,
        )
        Erasure.objects.create(
            actor=f"user:{rows.user.pk}",
            subject=Subject.END_USER,
            subject_id=uuid.uuid4(),
            turns_total=80,
            deleted={"turn": 35, "sample": 34},
            reason="waits for a reply that is being written",
            moved_at=now,
        )


def _drifting(rows: Rows) -> None:
    """Let the gauges have been read at each run's end, and the last one have stopped training."""
    with tenant_scope(rows.tenant.pk):
        runs = list(TrainingRun.objects.exclude(pk=rows.run.pk).order_by("created_at"))
        for number, run in enumerate(runs):
            part = number / len(runs)
            measured = {
                "rollout_learner": {
                    "train_rollout_logprob_abs_diff": 0.04 + 0.6 * part**2,
                    "rollout_k3": 0.02 + 0.75 * part**2,
                    "ess": 0.94 - 0.3 * part,
                    "clip_fraction": 0.02 + 0.1 * part,
                    "step_k3": 0.2 + part,
                },
                "rollout_deploy": {"sampling_shift": 0.1 + 0.2 * part},
                "learner_deploy": {"let_through": 0.4 - 0.1 * part, "judge_agreement": 0.86 - 0.1 * part},
            }
            for gauge, values in measured.items():
                reading = DriftReading.objects.create(
                    policy=rows.policy,
                    gauge=gauge,
                    run=run,
                    version=run.version,
                    values=values,
                    bounds={name: [BY_MEASURE[name].limit, BY_MEASURE[name].action] for name in values},
                    detail={"reasons": {"no signal": 41, "truncated": 7, "side turn": 3}}
                    if gauge == "learner_deploy"
                    else {},
                )
                DriftReading.objects.filter(pk=reading.pk).update(created_at=run.finished_at)
        last = DriftReading.objects.filter(run=runs[-1], gauge="rollout_learner").get()
        last.values["rollout_k3"] = 0.61
        last.save(update_fields=["values"])
        with transaction.atomic():
            crossings.judge(
                last, policy=rows.policy, bounds={"rollout_k3": BY_MEASURE["rollout_k3"]}, made=None
            )


def _remembered(rows: Rows, version: AdapterVersion) -> None:
    """Let the tenant's owner have asked for a few things."""
    said = (
        "Answer with a numbered list.",
        "Give longer answers.",
        "Give shorter answers.",
        "Use metric units, please.",
        "Say when you are not sure.",
        "תענה בעברית, בבקשה (and in English below).",
    )
    with tenant_scope(rows.tenant.pk):
        made = [
            add_preference(
                policy_id=rows.policy.pk,
                user_id=rows.user.pk,
                end_user=None,
                text=words,
                pinned=words.startswith("Use"),
                actor="test",
            )
            for words in said
        ]
        turns = Turn.objects.filter(state=TurnState.COMPLETE).order_by("-created_at")[:6]
        for number, turn in enumerate(turns):
            Evidence.objects.create(preference=made[3 + number % 2], turn=turn, words=said[3 + number % 2])
        Preference.objects.filter(pk=made[0].pk).update(
            state=PreferenceState.LEARNED,
            held_by=version,
            held_since=timezone.now() - dt.timedelta(days=2),
            reason="15 of 16 replies do it untold",
        )


def _version(rows: Rows, parent: AdapterVersion, when: dt.datetime, part: float) -> AdapterVersion:
    run_id, number = uuid.uuid4(), parent.number + 1
    sha256 = uuid.uuid4().hex * 2
    version = AdapterVersion.objects.create(
        tenant=rows.tenant,
        policy=rows.policy,
        number=number,
        parent=parent,
        depth=number,
        served_name=f"p{rows.policy.pk.hex[-8:]}-v{number}-{sha256[:8]}",
        sha256=sha256,
        path=f"{rows.tenant.pk}/{number}",
        rank=16,
        alpha=32,
        state=VersionState.READY,
        run_id=run_id,
        metrics={"loss": 1.4 - part, "rollout_k3": 0.01 + 0.02 * part},
    )
    run = TrainingRun.objects.create(
        id=run_id,
        tenant=rows.tenant,
        policy=rows.policy,
        state=RunState.SUCCEEDED,
        trigger="threshold",
        parent=parent,
        version=version,
        metrics={
            "loss": 1.4 - part + 0.1 * math.sin(7 * part),
            "reward_mean": 2 * part - 1,
            "rollout_k3": 0.01 + 0.02 * part,
            "ess": 0.95 - 0.2 * part,
            "clip_fraction": 0.02 + 0.05 * part,
            "staleness": {"0": 30, "1": round(12 * part)},
        },
        started_at=when,
        finished_at=when + dt.timedelta(seconds=40),
    )
    move = PointerMove.objects.create(
        tenant=rows.tenant,
        policy=rows.policy,
        from_version=parent,
        to_version=version,
        actor="system:test",
        reason="newer",
    )
    for model, key in ((AdapterVersion, version.pk), (TrainingRun, run.pk), (PointerMove, move.pk)):
        model._default_manager.filter(pk=key).update(created_at=when)
    rows.policy.live = version
    rows.policy.save(update_fields=["live"])
    _learned_from(rows, parent, run, when)
    _checked(rows, version, part)
    return version


def _learned_from(rows: Rows, parent: AdapterVersion, run: TrainingRun, when: dt.datetime) -> None:
    """Let a run have learned from what the version before it answered;
    some of it waited for a step too long."""
    ready = Sample.objects.filter(tenant=rows.tenant, version=parent, state=SampleState.READY)
    given = list(ready.order_by("turn__created_at").values_list("pk", flat=True))
    taken = Sample.objects.filter(pk__in=given)
    taken.update(state=SampleState.CONSUMED, run=run, consumed_at=when, staleness=0)
    Sample.objects.filter(pk__in=given[:: 3 + parent.number]).update(staleness=1, weight=0.7)


def _checked(rows: Rows, version: AdapterVersion, part: float) -> None:
    """Let a version have been checked as one is before it answers:
    its files, an engine, replies to held-out questions."""
    replies = {
        "passes": round(5 + 9 * part),
        "of": 16,
        "closeness": -1.9 + part,
        "on_topic": 16,
        "looping": 0,
        "empty": 0,
        "mean_tokens": 21.4,
        "k3": 0.42 * part,
        "general": 16,
        "general_of": 16,
        "told_passes": 14,
        "told_of": 16,
        "reason": "",
    }
    for check, detail in (
        ("preflight", {"layers": 30, "parameters": 4_884_480}),
        ("probe", {"engines": [{"url": rows.engine.url, "result": "answers", "reason": ""}]}),
        ("held-out", replies),
    ):
        made = GateResult.objects.create(
            tenant=rows.tenant, version=version, check_name=check, passed=True, detail=detail
        )
        GateResult.objects.filter(pk=made.pk).update(created_at=version.created_at)
