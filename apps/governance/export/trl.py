"""The same turns as training rows in the conversational layouts that TRL documents
(huggingface.co/docs/trl/dataset_formats).

A row is made of each sample that a step could have learned from: what is ineligible (opted out, personal
data, cut off …) teaches nobody, here neither.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from apps.conversations.models import Feedback
from apps.conversations.reading import as_read
from apps.conversations.told import Told
from apps.governance.export.privacy import Privacy
from apps.governance.export.tables import WIDE, Part, Row
from apps.judging.personal_data import why_not_trained_on
from apps.learning.models import Sample, SampleState

_FIELDS = (
    *("turn_id", "policy_id", "source", "state", "reward", "rollout_outcome", "rollout_group", "hints"),
    *("created_at", "turn__messages", "turn__tools", "turn__memory", "turn__reply", "turn__next_state"),
    "turn__prompt_source",
)


def _samples() -> QuerySet[Any, Any]:
    corrected = (
        Feedback.objects.filter(turn=OuterRef("turn")).exclude(correction="").order_by("-created_at", "-id")
    )
    rows: QuerySet[Any, Any] = (
        Sample.objects.exclude(state=SampleState.INELIGIBLE)
        .filter(turn__reply__isnull=False)
        .annotate(correction=Subquery(corrected.values("correction")[:1]), number=F("version__number"))
        .order_by("created_at")
        .values(*_FIELDS, "correction", "number")
    )
    return rows


def _scored() -> QuerySet[Any, Any]:
    return _samples().filter(Q(reward__isnull=False) | Q(rollout_outcome__isnull=False))


def _corrected() -> QuerySet[Any, Any]:
    return _samples().filter(correction__isnull=False)


def score_of(row: Mapping[str, Any]) -> float | None:
    """Return what a sample is worth: its process reward, and the attempt's outcome where it has one."""
    said = [value for value in (row["reward"], row["rollout_outcome"]) if value is not None]
    return float(sum(said)) if said else None


def base_of(row: Mapping[str, Any], privacy: Privacy) -> Row | None:
    """Return prompt and completion of a sample as messages;
    None where the policy's setting keeps it from teaching."""
    messages, reply = row["turn__messages"], row["turn__reply"]
    mode = privacy.mode(row["policy_id"])
    if why_not_trained_on(mode, request=messages, reply=reply, next_state=row["turn__next_state"]):
        return None
    prompt = as_read(
        messages,
        Told.of(row["turn__memory"]),
        turn_id=row["turn_id"],
        source=row["turn__prompt_source"],
    )
    found: Row = {
        "prompt": privacy.blanked(row["policy_id"], [message_of(one) for one in prompt]),
        "completion": [message_of(reply)],
    }
    if row["turn__tools"]:
        found["tools"] = row["turn__tools"]
    return found


def message_of(message: Mapping[str, Any]) -> Row:
    """Return a message with text as a string, and arguments of tool calls as objects, where they are JSON."""
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content if isinstance(part, Mapping))
    found: Row = {"role": message["role"], "content": content or ""}
    if calls := message.get("tool_calls"):
        found["tool_calls"] = [
            {
                "type": "function",
                "function": {
                    "name": call["function"]["name"],
                    "arguments": _arguments(call["function"].get("arguments")),
                },
            }
            for call in calls
        ]
    if name := message.get("name"):
        found["name"] = name
    return found


def _arguments(said: Any) -> Any:
    if not isinstance(said, str):
        return said
    try:
        read = orjson.loads(said)
        orjson.dumps(read)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return said  # NaN, say, or nested deeper than it could be written again
    return read


def _uses_tools(row: Mapping[str, Any]) -> bool:
    said = [*row["turn__messages"], row["turn__reply"]]
    return bool(row["turn__tools"]) or any(
        one.get("tool_calls") or one.get("role") == "tool" for one in said if isinstance(one, Mapping)
    )


def _about(row: Mapping[str, Any], privacy: Privacy) -> Row:
    hints = [hint["text"] for hint in row["hints"] or () if "text" in hint]
    return {
        "reward": score_of(row),
        "hint": privacy.blanked(row["policy_id"], hints[0]) if hints else None,
        "source": row["source"],
        "group": row["rollout_group"],
        "version": row["number"] or 0,
        "policy": str(row["policy_id"]),
        "turn": str(row["turn_id"]),
    }


def _completion(row: Mapping[str, Any], privacy: Privacy) -> Row | None:
    base = None if _uses_tools(row) else base_of(row, privacy)
    return None if base is None else base | _about(row, privacy)


def _completion_with_tools(row: Mapping[str, Any], privacy: Privacy) -> Row | None:
    base = base_of(row, privacy) if _uses_tools(row) else None
    return None if base is None else {"tools": []} | base | _about(row, privacy)


def _labelled(row: Mapping[str, Any], privacy: Privacy) -> Row | None:
    score = score_of(row)
    base = None if _uses_tools(row) or not score else base_of(row, privacy)
    return None if base is None or not score else base | {"label": score > 0, "turn": str(row["turn_id"])}


def _preferred(row: Mapping[str, Any], privacy: Privacy) -> Row | None:
    base = None if _uses_tools(row) else base_of(row, privacy)
    if base is None:
        return None
    better = privacy.blanked(row["policy_id"], row["correction"])
    return {
        "prompt": base["prompt"],
        "chosen": [{"role": "assistant", "content": better}],
        "rejected": base["completion"],
        "turn": str(row["turn_id"]),
    }


PARTS = (
    Part(
        "trl/prompt-completion.jsonl",
        _scored,
        _completion,
        at_a_time=WIDE,
        says="prompt, completion and reward (SFT; rewards and hints in columns of their own)",
    ),
    Part(
        "trl/prompt-completion-tools.jsonl",
        _scored,
        _completion_with_tools,
        at_a_time=WIDE,
        says="the same of turns with tools, whose columns differ",
    ),
    Part(
        "trl/unpaired-preference.jsonl",
        _scored,
        _labelled,
        at_a_time=WIDE,
        says="prompt, completion and label: true for a good reply, false for a bad one (KTO)",
    ),
    Part(
        "trl/preference.jsonl",
        _corrected,
        _preferred,
        at_a_time=WIDE,
        says="prompt, chosen and rejected: a person's correction beside the reply (DPO)",
    ),
)
