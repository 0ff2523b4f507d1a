"""Which rows an archive holds, and what of them:
every column is named here, so that no secret comes along by itself."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from apps.adapters.models import AdapterVersion, Policy, PolicyConfig
from apps.conversations.models import Feedback, Session, Turn
from apps.governance.export.privacy import Privacy
from apps.judging.models import Judgement
from apps.judging.reasons import explained
from apps.learning.models import Sample, TrainingRun
from apps.memory.models import Preference
from kernel.models import AuditEntry

Row = dict[str, Any]

WIDE = 20
"""Rows fetched at a time where one may hold megabytes."""
NARROW = 500


@dataclass(frozen=True, slots=True)
class Part:
    """One file of the archive: its rows, oldest first, and how each is written (None: it is left out)."""

    name: str
    rows: Callable[[], QuerySet[Any, Any]]
    write: Callable[[Any, Privacy], Row | None]
    at_a_time: int = NARROW
    says: str = ""

    def lines(self, privacy: Privacy) -> Iterator[Row | None]:
        """Yield what is written of each row; rows are read by a cursor of the database's, some at a time."""
        for row in self.rows().iterator(chunk_size=self.at_a_time):
            yield self.write(row, privacy)


def finite(value: Any) -> Any:
    """Return a number that JSON has, None for the others; of a list each."""
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(*texts: str) -> Callable[[Any, Privacy], Row]:
    """Return how a row of values is written as it is, but for `texts`, which may hold what people said."""

    def write(row: Mapping[str, Any], privacy: Privacy) -> Row:
        policy_id = row.get("policy_id")
        return {
            name: privacy.blanked(policy_id, value) if name in texts else finite(value)
            for name, value in row.items()
        }

    return write


_TURN = (
    *("id", "session_id", "parent_id", "policy_id", "kind", "side", "state", "created_at", "completed_at"),
    *("messages", "tools", "memory", "reply", "next_state", "next_state_at", "next_turn_id", "reply_edited"),
    *("sampling", "template_kwargs", "prompt_source", "prompt_reason", "finish_reason", "usage", "error"),
    *("first_token_ms", "latency_ms", "prompt_ids", "output_ids", "output_logprobs", "spans", "version_id"),
)
_TURNS_VERSION = ("version__number", "version__served_name")
_TURNS_SAMPLE = ("state", "reason", "reward", "rollout_outcome", "weight", "staleness", "run_id", "hints")
_SAID = ("messages", "tools", "memory", "reply", "next_state", "error")
_TOKENS = ("prompt_ids", "output_ids", "output_logprobs")


def _turns() -> QuerySet[Any, Any]:
    sample = (f"sample__{name}" for name in _TURNS_SAMPLE)
    rows: QuerySet[Any, Any] = Turn.objects.order_by("created_at").values(*_TURN, *_TURNS_VERSION, *sample)
    return rows


def _turn(row: Mapping[str, Any], privacy: Privacy) -> Row:
    """Return a turn, whole. Tokens spell the text: where something in it is blanked they are left out."""
    policy_id = row["policy_id"]
    written: Row = {name: row[name] for name in _TURN}
    written["output_logprobs"] = finite(written["output_logprobs"])
    written["version"] = row["version__number"] or 0
    written["served_name"] = row["version__served_name"]
    sample = {name: row[f"sample__{name}"] for name in _TURNS_SAMPLE}
    # what a shadow rollout taught keeps the wishes' ids and not their words
    hints = [hint["text"] for hint in sample.pop("hints") or () if "text" in hint]
    written["training"] = {
        **{name: finite(value) for name, value in sample.items()},
        "hints": privacy.blanked(policy_id, hints),
        "means": explained(sample["reason"] or ""),
    }
    if privacy.looks(policy_id):
        seen = {name: privacy.blanked(policy_id, row[name]) for name in _SAID}
        written["redacted"] = any(seen[name] != row[name] for name in _SAID)
        if written["redacted"]:
            written |= seen | dict.fromkeys(_TOKENS)
    return written


def _judgements() -> QuerySet[Any, Any]:
    return (
        Judgement.objects.order_by("created_at")
        .select_related("turn")
        .only(
            *("id", "turn__policy_id", "judge", "prompt_version", "rubric_id", "votes_asked", "temperature"),
            *("state", "attempts", "reward", "source", "reason", "created_at", "settled_at"),
        )
        .prefetch_related("votes", "hints")
    )


def _judgement(row: Judgement, privacy: Privacy) -> Row:
    policy_id = row.turn.policy_id
    names = (
        *("id", "turn_id", "judge", "prompt_version", "rubric_id", "votes_asked", "temperature", "state"),
        *("attempts", "reward", "source", "reason", "created_at", "settled_at"),
    )
    return {
        **{name: getattr(row, name) for name in names},
        "votes": [
            {
                "attempt": vote.attempt,
                "number": vote.number,
                "score": vote.score,
                "text": privacy.blanked(policy_id, vote.text),
                "abstained_because": vote.abstained_because,
                "tokens": vote.tokens,
                "prompt_tokens": vote.prompt_tokens,
            }
            for vote in sorted(row.votes.all(), key=lambda one: (one.attempt, one.number))
        ],
        "hints": [
            {
                "number": hint.number,
                "text": privacy.blanked(policy_id, hint.text),
                "accepted": hint.accepted,
                "reason": hint.reason,
                "by_user": hint.by_user,
            }
            for hint in sorted(row.hints.all(), key=lambda one: one.number)
        ],
    }


def _samples() -> QuerySet[Any, Any]:
    rows: QuerySet[Any, Any] = Sample.objects.order_by("created_at").values(
        *("id", "turn_id", "policy_id", "source", "state", "reason", "reward", "rollout_outcome"),
        *("rollout_group", "rollout_step", "hints", "version_id", "run_id", "run__version_id", "staleness"),
        *("weight", "refusals", "outcome", "created_at", "consumed_at"),
    )
    return rows


def _sample(row: Mapping[str, Any], privacy: Privacy) -> Row:
    written = {name: finite(value) for name, value in row.items()}
    written["made_version_id"] = written.pop("run__version_id")
    hints = [dict(hint) for hint in row["hints"] or ()]
    for hint in hints:
        if privacy.looks(row["policy_id"]):
            hint["prompt_ids"] = None  # they spell the whole prompt, which is in the turn
        if "text" in hint:
            hint["text"] = privacy.blanked(row["policy_id"], hint["text"])
    written["hints"] = hints
    return written


def _feedback(row: Mapping[str, Any], privacy: Privacy) -> Row:
    written = dict(row)
    policy_id = written.pop("turn__policy_id")
    return {**written, "correction": privacy.blanked(policy_id, written["correction"])}


def _memory() -> QuerySet[Any, Any]:
    return (
        Preference.objects.order_by("created_at")
        .select_related("end_user", "held_by")
        .prefetch_related("evidence")
    )


def _preference(row: Preference, privacy: Privacy) -> Row:
    names = (
        *("id", "policy_id", "user_id", "state", "source", "general", "pinned", "revision"),
        *("superseded_by_id", "held_by_id", "held_since", "reason", "created_at", "changed_at"),
    )
    end_user = row.end_user.external_id if row.end_user is not None else None
    evidence = sorted(row.evidence.all(), key=lambda one: one.pk)
    said = [row.own_words, *(one.words for one in evidence)]
    own_words, *words = privacy.blanked(row.policy_id, said)
    return {
        **{name: getattr(row, name) for name in names},
        # a topic repeats words: "name:…"
        "topics": privacy.blanked(row.policy_id, row.topics) if [own_words, *words] == said else [],
        "end_user": privacy.blanked(row.policy_id, end_user),
        "own_words": own_words,
        "evidence": [
            {"turn_id": one.turn_id, "words": text} for one, text in zip(evidence, words, strict=True)
        ],
    }


PARTS = (
    Part(
        "policies.jsonl",
        lambda: Policy.objects.order_by("created_at").values(
            "id", "name", "base_model", "live_id", "temperature", "training_enabled", "config", "created_at"
        ),
        _plain(),
        says="what the tenant calls its models",
    ),
    Part(
        "configurations.jsonl",
        lambda: PolicyConfig.objects.order_by("created_at").values(
            "id", "policy_id", "number", "overrides", "actor", "created_at"
        ),
        _plain(),
        says="every configuration that a policy learned by",
    ),
    Part(
        "versions.jsonl",
        lambda: AdapterVersion.objects.order_by("created_at").values(
            *("id", "policy_id", "number", "parent_id", "depth", "served_name", "sha256", "rank", "alpha"),
            *("state", "reason", "run_id", "metrics", "created_at", "ready_at"),
        ),
        _plain(),
        says="adapters with their lineage; the weights themselves are a download of each version",
    ),
    Part(
        "runs.jsonl",
        lambda: TrainingRun.objects.order_by("created_at").values(
            *("id", "policy_id", "state", "trigger", "config", "parent_id", "version_id", "attempts"),
            *("trainer_s", "metrics", "reason", "created_at", "started_at", "finished_at"),
        ),
        _plain(),
        says="training steps, with the configuration of each",
    ),
    Part(
        "sessions.jsonl",
        lambda: Session.objects.order_by("created_at").values(
            *("id", "user_id", "end_user__external_id", "policy_id", "kind", "external_id"),
            *("created_at", "last_turn_at", "idle_at"),
        ),
        _plain("end_user__external_id", "external_id"),
        says="conversations",
    ),
    Part(
        "turns.jsonl",
        _turns,
        _turn,
        at_a_time=WIDE,
        says=(
            "requests and replies: messages, exact tokens with log-probabilities, the version that wrote them, "
            "and in `training` the reward, the hints and why a turn was or was not trained on"
        ),
    ),
    Part("judgements.jsonl", _judgements, _judgement, says="verdicts with every vote and hint"),
    Part(
        "samples.jsonl",
        _samples,
        _sample,
        at_a_time=WIDE,
        says="what each turn was worth, and which run took it",
    ),
    Part(
        "feedback.jsonl",
        lambda: Feedback.objects.order_by("created_at").values(
            "id", "turn_id", "turn__policy_id", "user_id", "score", "correction", "created_at"
        ),
        _feedback,
        says="thumbs and corrections",
    ),
    Part("memory.jsonl", _memory, _preference, says="what people asked for, and the turns that it rests on"),
)


def audit_part(tenant_id: Any) -> Part:
    """Return the audit log as a file: its rows are no tenant model's, so they are told whose they are."""
    return Part(
        "audit.jsonl",
        lambda: (
            AuditEntry.objects.filter(tenant_id=tenant_id)
            .order_by("created_at")
            .values("id", "created_at", "actor", "action", "target", "detail")
        ),
        _plain("detail"),
        says="who did what",
    )
