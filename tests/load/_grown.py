"""Grow a tenant to any number of turns inside Postgres, with everything else that comes with them, in proportion.

Rows are copies of a tenant's first ones (`tests.apps.console.rows.fill`) with ids, times, names and measures
of their own. Row 0 of each table is the newest; ids carry their row's time, as the platform's do. The same
number gives the same row, so a large table begins with all rows of a small one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Execute = Callable[[str, Sequence[Any]], Any]
"""Runs one statement with its parameters."""


PAGE = 100
"""Rows of the longest page."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How many turns there are to one row of what comes with them, and how far apart turns are."""

    seconds: float = 2.592  # a million in 30 days
    session: int = 4
    run: int = 64  # turns that a step learns from: also to a version, its gate result, readings, alert …
    end_user: int = 100
    feedback: int = 20
    audit: int = 20
    preference: int = 200
    crossing: int = 2_048  # a multiple of `run`
    lesson: int = 2_000
    rare: int = 10_000  # deletions, archives, windows that are judged once more, opt-outs

    @classmethod
    def of(cls, turns: int) -> Shape:
        """Return the shape of so many turns: what is rare fills a page with few turns too, and one halfway back.

        Else a list of it shows one row with few turns and a full page with many, and what is compared is the
        rows.
        """
        most = max(1, turns // PAGE)
        usual = cls()
        return cls(
            crossing=min(usual.crossing, max(usual.run, most // usual.run * usual.run)),
            preference=min(usual.preference, most),
            lesson=min(usual.lesson, most),
            rare=min(usual.rare, most),
        )


@dataclass(frozen=True, slots=True)
class Table:
    """How one table grows: a copy of `source`'s row for every `every` turns, but for `changed`."""

    name: str
    source: Any
    every: int
    changed: Mapping[str, str] = field(default_factory=dict)
    first: int = 0  # rows 0 to first - 1 are left out


def grow(
    execute: Execute, first: Mapping[str, Any], turns: int, shape: Shape, *, origin: str
) -> Iterator[str]:
    """Give a tenant `turns` turns, the newest at `origin` (ISO 8601); yields what it is about to write.

    `first` are the rows to copy (`first_rows`).
    """
    for table in _tables(first, turns, shape, origin):
        count = turns // table.every
        if count <= table.first:
            continue
        yield f"{count - table.first:,} rows of {table.name}"
        found = execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s"
            " AND is_identity = 'NO' ORDER BY 1",
            [table.name],
        )
        columns = [name for (name,) in found.fetchall()]
        values = ", ".join(table.changed.get(name, f'source."{name}"') for name in columns).replace("%", "%%")
        names = ", ".join(f'"{name}"' for name in columns)
        execute(
            f"INSERT INTO {table.name} ({names}) SELECT {values} FROM {table.name} AS source,"  # noqa: S608  # our own names
            f" generate_series({count - 1}, {table.first}, -1) AS k WHERE source.id = %s",
            [table.source],
        )
    steps = turns // shape.run
    if steps > 1:
        execute(
            f"UPDATE adapters_policy SET live_id = {_Names(turns, shape, origin).key('version', '1')} WHERE id = %s",  # noqa: S608
            [first["adapters.Policy"]],
        )


@dataclass(frozen=True, slots=True)
class _Names:
    """SQL of times and ids: what row `k` of a table is called by the rows that name it."""

    turns: int
    shape: Shape
    origin: str

    def every(self, name: str) -> int:
        """How many turns lie between two rows."""
        shape = self.shape
        per_run = ("run", "version", "gate", "move", "desired", "reading", "alert", "delivery", "attempt")
        return {
            "turn": 1, "sample": 1, "judgement": 1, "vote": 1, "hint": 3, "outbox": 2,
            "session": shape.session, "end_user": shape.end_user, "feedback": shape.feedback, "audit": shape.audit,
            "preference": shape.preference, "evidence": shape.preference, "lesson": shape.lesson,
            "crossing": shape.crossing, "pause": shape.crossing, "trajectory": shape.session * 10,
            **dict.fromkeys(per_run, shape.run),
            **dict.fromkeys(("erasure", "export", "rejudging", "rubric", "opt_out"), shape.rare),
        }[name]  # fmt: skip

    def when(self, name: str, k: str = "k") -> str:
        """The moment of a row."""
        return (
            f"('{self.origin}'::timestamptz"
            f" - make_interval(secs => ({k}) * {self.every(name) * self.shape.seconds}::float8))"
        )

    def key(self, name: str, k: str = "k") -> str:
        """The id of a row: its time first, as UUIDs of version 7 have it."""
        millis = f"(extract(epoch FROM {self.when(name, k)}) * 1000)::bigint"
        noise = f"md5('{name} ' || ({k}))"
        return f"(lpad(to_hex({millis}), 12, '0') || '7' || substr({noise}, 1, 3) || '8' || substr({noise}, 4, 15))::uuid"


def _tables(source: Mapping[str, Any], turns: int, shape: Shape, origin: str) -> Iterator[Table]:
    """Yield the tables in an order in which every row finds those that it names."""
    names = _Names(turns, shape, origin)
    steps = turns // shape.run

    def table(name: str, of: str, source: Any, *, first: int = 0, **changed: str) -> Table:
        made = {"id": names.key(of), "created_at": names.when(of)} | changed
        return Table(name, source, names.every(of), made, first)

    base = source["adapters.AdapterVersion"]
    end_users = max(1, turns // shape.end_user)
    # step k learned from turns k * run to (k + 1) * run - 1, and turns before its version became live were
    # answered by the one before; what is newer than step 1 waits
    before = f"CASE WHEN k + 1 < {steps} THEN {names.key('version', 'k + 1')} ELSE '{base}'::uuid END"
    answered = (
        f"CASE WHEN k / {shape.run} + 1 < {steps} THEN {names.key('version', f'k / {shape.run} + 1')}"
        f" ELSE '{base}'::uuid END"
    )
    learned = f"k >= {shape.run} AND k / {shape.run} < {steps} AND k % 32 <> 7"
    sha256 = "md5('{0} ' || k) || md5('{0}, ' || k)"
    yield table("accounts_enduser", "end_user", source["accounts.EndUser"], external_id="'person ' || k")
    yield table(
        "adapters_adapterversion", "version", base, first=1,
        number=f"{steps} - k + 2", depth=f"{steps} - k + 2", parent_id=before, run_id=names.key("run"),
        served_name=f"'grown-v' || ({steps} - k + 2)", sha256=sha256.format("version"), ready_at=names.when("version"),
    )  # fmt: skip
    yield table(
        "adapters_gateresult", "gate", source["adapters.GateResult"], first=1, version_id=names.key("version")
    )
    yield table(
        "adapters_pointermove", "move", source["adapters.PointerMove"], first=1,
        from_version_id=before, to_version_id=names.key("version"),
    )  # fmt: skip
    yield table(
        "engines_desiredadapter", "desired", source["engines.DesiredAdapter"], first=1,
        served_name=f"'grown-v' || ({steps} - k + 2)", sha256=sha256.format("version"), wanted="false",
        unwanted_at=names.when("desired"),
    )  # fmt: skip
    yield table(
        "learning_trainingrun", "run", source["learning.TrainingRun"], first=1, parent_id=before, version_id=names.key("version"),
        started_at=names.when("run"), finished_at=f"{names.when('run')} + interval '25 s'",
    )  # fmt: skip
    yield table(
        "learning_driftreading", "reading", source["learning.DriftReading"], first=1,
        run_id=names.key("run"), version_id=names.key("version"),
    )  # fmt: skip
    yield table(
        "learning_crossing", "crossing", source["learning.Crossing"], first=1,
        reading_id=names.key("reading", f"k * {shape.crossing // shape.run}"),
        version_id=names.key("version", f"k * {shape.crossing // shape.run}"),
    )  # fmt: skip
    yield table("learning_trainingpause", "pause", source["learning.TrainingPause"], first=1)
    yield table(
        "alerts_alert",
        "alert",
        source["alerts.Alert"],
        first=1,
        run_id=names.key("run"),
        dedupe_key="'grown ' || k",
    )
    yield table(
        "alerts_delivery", "delivery", source["alerts.Delivery"], first=1, alert_id=names.key("alert"),
        due_at=names.when("delivery"), endpoint_id=f"'{source['alerts.WebhookEndpoint']}'::uuid", recipient="''",
        state="'dead'", attempts="1",
    )  # fmt: skip
    yield table(
        "alerts_attempt", "attempt", source["alerts.Attempt"], first=1, delivery_id=names.key("delivery")
    )
    yield table(
        "conversations_session", "session", source["conversations.Session"], external_id="NULL",
        end_user_id=names.key("end_user", f"(k * {shape.session} / {shape.end_user}) % {end_users}"),
        last_turn_at=names.when("session"), idle_at=f"{names.when('session')} + interval '15 minutes'",
        kind="CASE k % 10 WHEN 9 THEN 'rollout' ELSE 'live' END",
    )  # fmt: skip
    yield table(
        "conversations_turn", "turn", source["conversations.Turn"],
        session_id=names.key("session", f"k / {shape.session}"), version_id=answered,
        kind=f"CASE k / {shape.session} % 10 WHEN 9 THEN 'rollout' ELSE 'live' END",
        state="CASE k % 200 WHEN 13 THEN 'failed' ELSE 'complete' END",
        error="CASE k % 200 WHEN 13 THEN 'no engine is ready' ELSE '' END",
        completed_at=names.when("turn"), parent_id="NULL", next_turn_id="NULL", idempotency_key="NULL",
        request_hash=sha256.format("asked"), reply_hash=sha256.format("reply"), body_sha256=sha256.format("body"),
        first_token_ms="20 + (k * 7919::bigint) % 400", latency_ms="300 + (k * 104729::bigint) % 3000",
    )  # fmt: skip
    yield table(
        "learning_sample", "sample", source["learning.Sample"], turn_id=names.key("turn"), version_id=answered,
        run_id=f"CASE WHEN {learned} THEN {names.key('run', f'k / {shape.run}')} END",
        state=f"CASE WHEN k % 32 = 7 THEN 'ineligible' WHEN {learned} THEN 'consumed' ELSE 'ready' END",
        reason="CASE WHEN k % 32 = 7 THEN 'no next state' ELSE '' END",
        consumed_at=f"CASE WHEN {learned} THEN {names.when('sample')} END", reward="k % 3 - 1",
    )  # fmt: skip
    yield table(
        "judging_judgement", "judgement", source["judging.Judgement"], turn_id=names.key("turn"),
        settled_at=names.when("judgement"), reward="k % 3 - 1",
    )  # fmt: skip
    yield table("judging_vote", "vote", source["judging.Vote"], judgement_id=names.key("judgement"))
    yield table("judging_hint", "hint", source["judging.Hint"], judgement_id=names.key("judgement", "k * 3"))
    yield table(
        "judging_trajectory", "trajectory", source["judging.Trajectory"],
        session_id=names.key("session", "k * 10 + 9"), task_group="'group ' || k / 8",
    )  # fmt: skip
    yield table(
        "judging_rejudging",
        "rejudging",
        source["judging.Rejudging"],
        state="'done'",
        finished_at=names.when("rejudging"),
    )
    yield table("judging_rubric", "rubric", source["judging.Rubric"], number="k + 2")
    yield table("judging_optout", "opt_out", source["judging.OptOut"], ended_at=names.when("opt_out"))
    yield table(
        "conversations_feedback", "feedback", source["conversations.Feedback"],
        turn_id=names.key("turn", f"k * {shape.feedback}"), score="k % 3 - 1",
    )  # fmt: skip
    yield table(
        "memory_preference", "preference", source["memory.Preference"],
        end_user_id=names.key("end_user", f"k % {end_users}"), fingerprint=sha256.format("preference"),
        state="CASE k % 3 WHEN 1 THEN 'learned' ELSE 'active' END",
        held_since=f"CASE k % 3 WHEN 1 THEN {names.when('preference')} END",
        held_by_id=f"CASE k % 3 WHEN 1 THEN '{base}'::uuid END",
    )  # fmt: skip
    for said in range(2):
        yield table(
            "memory_evidence", "evidence", source["memory.Evidence"], preference_id=names.key("preference"),
            turn_id=names.key("turn", f"k * {shape.preference} + {said}"),
            id=names.key("evidence", f"k * 2 + {said}"),
        )  # fmt: skip
    yield table(
        "memory_lesson", "lesson", source["memory.Lesson"], key=sha256.format("lesson"), state="'ended'"
    )
    yield table(
        "governance_erasure", "erasure", source["governance.Erasure"], subject_id=names.key("session", "k"),
    )  # fmt: skip
    yield table("governance_export", "export", source["governance.Export"])
    yield table("kernel_auditentry", "audit", source["kernel.AuditEntry"])
    yield Table(
        "kernel_outboxmessage", source["kernel.OutboxMessage"], names.every("outbox"),
        {
            "dedupe_key": "NULL", "created_at": names.when("outbox"), "available_at": names.when("outbox"),
            "sent_at": names.when("outbox"),
        },
    )  # fmt: skip


def newest_ids(execute: Execute, turns: int, shape: Shape, *, origin: str) -> dict[str, Any]:
    """Return the id of a grown row of each kind that pages are about; the same for every number of turns."""
    names = _Names(turns, shape, origin)
    kinds = ("session", "turn", "preference", "version", "run", "erasure")
    keys = ", ".join(names.key(kind, "1" if kind in {"version", "run"} else "0") for kind in kinds)
    return dict(zip(kinds, execute(f"SELECT {keys}", []).fetchone(), strict=True))  # our own names


def first_rows(tenant_id: uuid.UUID) -> dict[str, Any]:
    """Return the id of a tenant's newest row of every table that has one, by the model's label."""
    from django.apps import apps

    from kernel.tenancy import system_scope

    found = {}
    with system_scope("rows to copy"):
        for model in apps.get_models():
            if any(one.name == "tenant" for one in model._meta.fields):
                newest = model._default_manager.filter(tenant_id=tenant_id).order_by("-pk").first()
                found[model._meta.label] = None if newest is None else newest.pk
    return found
