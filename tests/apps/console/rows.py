"""One row of every table that belongs to a tenant, for tests that must see all of them."""

import datetime as dt
import hashlib
import uuid
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import EndUser, Invitation, Mail, MailState, Membership, Role, Tenant, User
from apps.adapters.models import AdapterVersion, GateResult, PointerMove, Policy, VersionState
from apps.alerts.models import Alert, Attempt, Delivery, Event, Severity, WebhookEndpoint
from apps.conversations.models import Feedback, Session, Turn, TurnState
from apps.dashboard.models import SavedView, TurnRollup
from apps.dashboard.rollups.stretches import begin
from apps.engines.models import DesiredAdapter, Engine, EngineState, LoadedAdapter, LoadState
from apps.governance.models import Erasure, Export, ExportState, LearnedFrom, Subject
from apps.judging.models import (
    Hint,
    Judgement,
    JudgementState,
    JudgeSettings,
    JudgeSpend,
    OptOut,
    Rejudging,
    Rubric,
    Trajectory,
    Vote,
)
from apps.keys.models import ApiKey, KeyPolicy, KeyScope, Limit
from apps.learning.drift.models import Crossing, DriftReading, TrainingPause
from apps.learning.models import (
    RewardBaseline,
    RolloutGate,
    RunState,
    Sample,
    SampleState,
    TrainerAccount,
    TrainingRun,
)
from apps.memory.models import Evidence, Lesson, MemorySetting, Preference, Source
from kernel import audit
from kernel.models import OutboxMessage, Wish
from kernel.tenancy import system_scope

NASTY = "<script>alert(1)</script> שלום \"quoted\" 'single' & {{ 7|add:7 }}"


@dataclass
class Rows:
    """A tenant's rows that tests speak of."""

    tenant: Tenant
    user: User
    key: ApiKey
    policy: Policy
    version: AdapterVersion
    older: AdapterVersion
    session: Session
    turn: Turn
    sample: Sample
    run: TrainingRun
    engine: Engine


def fill(slug: str, *, turns: int = 2, text: str = NASTY) -> Rows:
    """Make a tenant with rows in every table; `turns` in one session."""
    with system_scope("test rows"), transaction.atomic():
        tenant = Tenant.objects.create(slug=slug, name=slug.upper())
        user = User.objects.create_user(f"owner@{slug}.example", "a password of some length")
        Membership.objects.create(tenant=tenant, user=user, role=Role.OWNER)
        Invitation.objects.create(
            tenant=tenant,
            email=f"guest@{slug}.example",
            role=Role.MEMBER,
            token_sha256=hashlib.sha256(slug.encode()).digest(),
            inviter=user,
            expires_at=timezone.now() + dt.timedelta(days=1),
        )
        Mail.objects.create(
            kind="invitation", recipient=f"guest@{slug}.example", state=MailState.SENT, due_at=timezone.now()
        )
        end_user = EndUser.objects.create(tenant=tenant, external_id=f"end-{slug}")
        key = ApiKey.objects.create(
            tenant=tenant,
            user=user,
            name="a key",
            public_id=hashlib.sha256(slug.encode()).hexdigest()[:16],
            secret_sha256=hashlib.sha256(b"secret").digest(),
            scopes=[KeyScope.CHAT.value],
        )
        Limit.objects.create(tenant=tenant, key=key, requests_per_minute=60)
        policy = Policy.objects.create(tenant=tenant, name="default", base_model="tiny")
        older = _version(policy, 1, None, uuid.uuid4())
        run_id = uuid.uuid4()
        version = _version(policy, 2, older, run_id)
        policy.live = version
        policy.save(update_fields=["live"])
        PointerMove.objects.create(
            tenant=tenant,
            policy=policy,
            from_version=older,
            to_version=version,
            actor="system:test",
            reason="newer",
        )
        GateResult.objects.create(
            tenant=tenant, version=version, check_name="probe", passed=True, detail={"nats": 0.01}
        )
        engine, _ = Engine.objects.get_or_create(
            url="http://127.0.0.1:30000", defaults={"state": EngineState.READY, "seen_at": timezone.now()}
        )
        desired = DesiredAdapter.objects.create(
            tenant=tenant,
            served_name=version.served_name,
            path=version.path,
            sha256=version.sha256,
            rank=16,
            probe=[],
        )
        LoadedAdapter.objects.create(
            tenant=tenant, engine=engine, adapter=desired, state=LoadState.PROBED, probe={"nats": 0.01}
        )
        run = TrainingRun.objects.create(
            id=run_id,
            tenant=tenant,
            policy=policy,
            state=RunState.SUCCEEDED,
            trigger="threshold",
            parent=older,
            version=version,
            metrics={"loss": 0.5},
            progress={"phase": "write", "done": 4, "total": 4, "seconds": 8.5},
            started_at=timezone.now() - dt.timedelta(seconds=25),
            finished_at=timezone.now(),
        )
        TrainerAccount.objects.create(tenant=tenant, deficit_s=30.0)
        RolloutGate.objects.create(tenant=tenant, policy=policy, admitted=1)
        KeyPolicy.objects.create(tenant=tenant, key=key, policy=policy)
        _drifted(policy, run, version, text[:200])
        _told(tenant, user, policy, run, text[:200])
        RewardBaseline.objects.create(tenant=tenant, policy=policy, state={"mean": 0.1})
        session = Session.objects.create(
            tenant=tenant,
            user=user,
            end_user=end_user,
            policy=policy,
            external_id="first",
            last_turn_at=timezone.now(),
        )
        previous: Turn | None = None
        for index in range(turns):
            turn = _turn(session, key, version, previous, index, text)
            if previous is not None:
                previous.next_state = [{"role": "user", "content": f"question {index} {text}"}]
                previous.next_turn = turn
                previous.save(update_fields=["next_state", "next_turn"])
            previous = turn
            sample = _judged(turn, policy, version, run, text)
        assert previous is not None
        _judging_rules(policy, user, session, text)
        Feedback.objects.create(tenant=tenant, turn=previous, user=user, score=-1, correction=text)
        preference = Preference.objects.create(
            tenant=tenant,
            policy=policy,
            user=user,
            end_user=end_user,
            source=Source.HINT,
            fingerprint=hashlib.sha256(slug.encode()).hexdigest(),
        )
        Evidence.objects.create(tenant=tenant, preference=preference, turn=previous, words=text[:400])
        MemorySetting.objects.create(tenant=tenant, policy=policy)
        Lesson.objects.create(tenant=tenant, policy=policy, user=user, end_user=end_user, key="0" * 64)
        SavedView.objects.create(
            tenant=tenant, user=user, name=f"mine {text}"[:60], place=1, filters={"kind": "live"}
        )
        TurnRollup.objects.create(
            tenant=tenant,
            begins_at=begin(timezone.now() - dt.timedelta(days=40), 30),  # further back than any page looks
            minutes=30,
            requests=1,
            failed=0,
            prompt_tokens=3,
            reply_tokens=4,
            first_token_ms=[185, 1],
            latency_ms=[341, 1],
            reward=-1.0,
            rewarded=1,
        )
        Export.objects.create(
            tenant=tenant,
            actor=f"user:{user.pk}",
            state=ExportState.FAILED,
            reason="no space left",
            available_at=timezone.now(),
        )
        erasure = Erasure.objects.create(
            tenant=tenant,
            actor=f"user:{user.pk}",
            subject=Subject.SESSION,
            subject_id=uuid.uuid4(),
            state="done",
            turns_total=3,
            deleted={"turn": 3, "session": 1},
            moved_at=timezone.now(),
            finished_at=timezone.now(),
        )
        LearnedFrom.objects.create(tenant=tenant, erasure=erasure, version=version, samples=3)
        OutboxMessage.objects.create(
            tenant=tenant, task="workers.judging.judge_turn", queue="judge", available_at=timezone.now()
        )
        Wish.objects.create(tenant=tenant, user=user, idempotency_key="kept", request_mac=b"m" * 32)
        audit.record(
            actor="system:test", action="test.fill", target=f"tenant:{tenant.pk}", tenant_id=tenant.pk
        )
    return Rows(tenant, user, key, policy, version, older, session, previous, sample, run, engine)


def _drifted(policy: Policy, run: TrainingRun, version: AdapterVersion, text: str) -> None:
    tenant_id, now = policy.tenant_id, timezone.now()
    reading = DriftReading.objects.create(
        tenant_id=tenant_id,
        policy=policy,
        gauge="rollout_learner",
        run=run,
        version=version,
        values={"rollout_k3": 0.75, "ess": 0.9},
        bounds={"rollout_k3": [0.5, "pause"], "ess": [0.4, "alert"]},
    )
    Crossing.objects.create(
        tenant_id=tenant_id,
        policy=policy,
        reading=reading,
        measure="rollout_k3",
        value=0.75,
        bound=0.5,
        action="pause",
        words=f"k3 is 0.75 {text}",
        version=version,
        acted_at=now,
        cleared_at=now,
        cleared_by="test",
    )
    TrainingPause.objects.create(
        tenant_id=tenant_id,
        policy=policy,
        reason=f"k3 is 0.75 {text}",
        actor="system:drift",
        resumed_at=now,
        resumed_by="test",
    )


def _told(tenant: Tenant, user: User, policy: Policy, run: TrainingRun, text: str) -> None:
    now = timezone.now()
    alert = Alert.objects.create(
        tenant=tenant,
        event=Event.RUN_FAILED,
        severity=Severity.WARNING,
        words=f"a run failed {text}",
        policy_id=policy.pk,
        run_id=run.pk,
        dedupe_key="test",
    )
    endpoint = WebhookEndpoint.objects.create(
        tenant=tenant, url="https://hooks.example/in", events=[Event.RUN_FAILED.value], secret="sealed"
    )
    hook = Delivery.objects.create(
        tenant=tenant, alert=alert, endpoint=endpoint, state="dead", attempts=1, due_at=now, reason=text
    )
    Delivery.objects.create(tenant=tenant, alert=alert, recipient=user.email, due_at=now)
    Attempt.objects.create(tenant=tenant, delivery=hook, number=1, status=500, answer=text, took_ms=3.5)


def operator(email: str = "operator@localhost") -> User:
    """Make a person who may use the console."""
    return User.objects.create_superuser(email, "a password of some length")


def _version(policy: Policy, number: int, parent: AdapterVersion | None, run_id: uuid.UUID) -> AdapterVersion:
    sha256 = hashlib.sha256(f"{policy.pk} {number}".encode()).hexdigest()
    return AdapterVersion.objects.create(
        tenant_id=policy.tenant_id,
        policy=policy,
        number=number,
        parent=parent,
        depth=number,
        served_name=f"p{policy.pk.hex[-8:]}-v{number}-{sha256[:8]}",
        sha256=sha256,
        path=f"{policy.tenant_id}/{policy.pk}/{number}",
        rank=16,
        alpha=32,
        state=VersionState.READY,
        run_id=run_id,
        metrics={"loss": 0.25},
        ready_at=timezone.now(),
    )


def _turn(  # noqa: PLR0917
    session: Session, key: ApiKey, version: AdapterVersion, parent: Turn | None, index: int, text: str
) -> Turn:
    before = [] if parent is None else [*parent.messages, parent.reply]
    return Turn.objects.create(
        tenant_id=session.tenant_id,
        session=session,
        parent=parent,
        key=key,
        policy_id=session.policy_id,
        version=version,
        state=TurnState.COMPLETE,
        messages=[*before, {"role": "user", "content": f"question {index} {text}"}],
        sampling={"temperature": 0.7},
        prompt_ids=[1, 2, 3],
        request_hash=hashlib.sha256(f"{session.pk} {index}".encode()).hexdigest(),
        body_sha256=hashlib.sha256(b"body").hexdigest(),
        reply={"role": "assistant", "content": f"answer {index} {text}"},
        output_ids=[10, 11, 12, 13],
        output_logprobs=[-0.01, -0.5, -2.0, -7.5],
        spans=[[0, version.served_name]],
        finish_reason="stop",
        usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
        first_token_ms=40.0,
        latency_ms=900.0,
        completed_at=timezone.now(),
    )


def _judged(turn: Turn, policy: Policy, version: AdapterVersion, run: TrainingRun, text: str) -> Sample:
    tenant_id = turn.tenant_id
    judgement = Judgement.objects.create(
        tenant_id=tenant_id,
        turn=turn,
        judge="cue",
        prompt_version="1",
        state=JudgementState.SETTLED,
        reward=-1,
        settled_at=timezone.now(),
    )
    Vote.objects.create(
        tenant_id=tenant_id, judgement=judgement, number=1, score=-1, text=f"worse {text}", latency_ms=3.0
    )
    Hint.objects.create(
        tenant_id=tenant_id,
        judgement=judgement,
        number=1,
        text=f"be brief {text}",
        accepted=True,
        by_user=True,
    )
    return Sample.objects.create(
        tenant_id=tenant_id,
        policy=policy,
        turn=turn,
        source="live",
        state=SampleState.CONSUMED,
        reward=-1.0,
        hints=[{"text": f"be brief {text}", "prompt_ids": [1, 2]}],
        version=version,
        run=run,
        staleness=1,
        consumed_at=timezone.now(),
    )


def _judging_rules(policy: Policy, user: User, session: Session, text: str) -> None:
    tenant_id, now = policy.tenant_id, timezone.now()
    rubric = Rubric.objects.create(
        tenant_id=tenant_id, policy=policy, number=1, text=f"be kind {text}"[:4000], actor=f"user:{user.pk}"
    )
    JudgeSettings.objects.create(tenant_id=tenant_id, votes=5, daily_tokens=1_000_000)
    JudgeSpend.objects.create(tenant_id=tenant_id, day=now.date(), prompt_tokens=1200, completion_tokens=80)
    OptOut.objects.create(
        tenant_id=tenant_id,
        end_user=session.end_user,
        actor="system:test",
        ended_at=now - dt.timedelta(days=1),
    )
    Trajectory.objects.create(tenant_id=tenant_id, session=session, task="a task", task_group="a group")
    Rejudging.objects.create(
        tenant_id=tenant_id,
        policy=policy,
        rubric=rubric,
        since=now - dt.timedelta(days=1),
        until=now,
        judge="cue",
        prompt_version="1",
        votes_asked=1,
        temperature=0.0,
        actor="system:test",
        total=2,
    )
