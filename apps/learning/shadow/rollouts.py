"""One wave: the live version answers, each reply becomes a turn and a sample in one transaction."""

import hashlib
import logging
import time
import uuid
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.adapters.placement import engine_for
from apps.conversations.canonical import chain, clean
from apps.conversations.models import PromptSource, Session, Turn, TurnKind, TurnState
from apps.engines.aside import Answer, Room, ask_aside
from apps.engines.chat import chat_format
from apps.judging.personal_data import why_not_trained_on
from apps.judging.reasons import Reason
from apps.judging.rules import rules_of
from apps.learning import schedule
from apps.learning.degenerate import why_degenerate
from apps.learning.eligibility import why_misaligned
from apps.learning.models import Sample, SampleState
from apps.learning.shadow.plan import Wave
from apps.learning.shadow.questions import Question
from apps.memory.lessons import still_stands
from kernel.locks import locked

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Prompts:
    """What the student reads and what the teacher reads of one question."""

    question: Question
    student: list[int]
    teacher: list[int]


def roll_out(wave: Wave, *, room: Room) -> int:
    """Have a wave answered and store what came of it; return how many samples it made.

    Once `room` says 0, the engine is left to whoever came: replies that were begun are kept and marked, and
    are never trained on. Where something else is wanted by the time they are there, nothing is stored: a
    deletion that found no sample to take would be over. Raises what asking an engine raises; then nothing is
    stored.
    """
    prompts = [
        fit for question in wave.questions if (fit := _prompts(question, wave.stands.hint)) is not None
    ]
    if not prompts or not room():
        return 0
    url = engine_for(wave.version)
    started = time.monotonic()
    answers = ask_aside(
        url=url,
        adapter=wave.version.served_name if wave.version is not None else None,
        prompts=[one.student for one in prompts],
        sampling={"temperature": wave.temperature, "max_new_tokens": settings.SHADOW_MAX_TOKENS},
        room=room,
    )
    took_ms = (time.monotonic() - started) * 1000
    with transaction.atomic():
        made = _store(wave, prompts, answers, took_ms=took_ms)
        schedule.consider(policy_id=wave.policy.pk)
    return made


def _prompts(question: Question, hint: str) -> Prompts | None:
    """Return both prompts; None where the teacher's leaves no room for a reply."""
    chat = chat_format()
    student, teacher = chat.render(question.messages), chat.hinted(question.messages, hint)
    if len(teacher) + settings.SHADOW_MAX_TOKENS > settings.CONTEXT_LENGTH:
        return None
    return Prompts(question, student, teacher)


def _store(wave: Wave, prompts: list[Prompts], answers: list[Answer], *, took_ms: float) -> int:
    there = _still_there(prompts)
    if not still_stands(wave.policy, wave.stands):
        return 0
    begun = [
        (one, answer)
        for one, answer in zip(prompts, answers, strict=True)
        if answer.output_ids and (one.question.asked_in is None or one.question.asked_in in there)
    ]
    if not begun:
        return 0
    now = timezone.now()
    session = Session.objects.create(
        tenant_id=wave.policy.tenant_id,
        user_id=wave.stands.person.user_id,
        end_user_id=wave.stands.person.end_user_id,
        policy=wave.policy,
        kind=TurnKind.SHADOW,
        last_turn_at=now,
        idle_at=now,  # nobody will answer
    )
    made = 0
    mode = rules_of(wave.policy).personal_data
    for one, answer in begun:
        turn = Turn.objects.create(**_turn(wave, session, one, answer), latency_ms=took_ms, completed_at=now)
        found = why_not_trained_on(mode, request=turn.messages, reply=turn.reply or {}, next_state=None)
        refused = _why_not(answer) or (Reason.PERSONAL_DATA.say(", ".join(found)) if found else "")
        Sample.objects.create(
            tenant_id=turn.tenant_id,
            policy=wave.policy,
            turn=turn,
            source=TurnKind.SHADOW,
            version=wave.version,
            state=SampleState.INELIGIBLE if refused else SampleState.READY,
            reason=refused[:200],
            hints=[] if refused else [_hint(wave, one)],
        )
        made += not refused
    return made


def _still_there(prompts: list[Prompts]) -> set[uuid.UUID]:
    """Return the turns whose questions were asked, locked:
    what was deleted meanwhile is not kept by its repetition."""
    asked_in = {turn for one in prompts if (turn := one.question.asked_in) is not None}
    return set(locked(Turn.objects.filter(pk__in=asked_in)).values_list("pk", flat=True))


def _turn(wave: Wave, session: Session, one: Prompts, answer: Answer) -> dict[str, Any]:
    messages = list(one.question.messages)
    named = wave.version.served_name if wave.version is not None else settings.BASE_MODEL_NAME
    return {
        "tenant_id": session.tenant_id,
        "session": session,
        "policy": wave.policy,
        "version": wave.version,
        "kind": TurnKind.SHADOW,
        "repeats_id": one.question.asked_in,
        "state": TurnState.COMPLETE if answer.whole else TurnState.ABORTED,
        "messages": messages,
        "sampling": {"temperature": wave.temperature, "max_tokens": settings.SHADOW_MAX_TOKENS},
        "prompt_ids": one.student,
        "prompt_source": PromptSource.FIRST,
        "request_hash": chain(messages)[-1],
        "body_sha256": hashlib.sha256(one.question.key.encode()).hexdigest(),
        "reply": clean({"role": "assistant", "content": answer.text}),  # a model may write what is no text
        "output_ids": answer.output_ids,
        "output_logprobs": [] if answer.misaligned else answer.output_logprobs,
        "spans": [[0, named]],
        "finish_reason": answer.finish_reason,
        "usage": {"prompt_tokens": len(one.student), "completion_tokens": len(answer.output_ids)},
        "error": f"misaligned: {answer.misaligned}"[:500] if answer.misaligned else "",
    }


def _hint(wave: Wave, one: Prompts) -> dict[str, Any]:
    """Return what the teacher was told, with the preferences that it came from."""
    return {
        "text": wave.stands.hint,
        "prompt_ids": one.teacher,
        "preferences": wave.stands.entries,
    }


def _why_not(answer: Answer) -> str:
    if not answer.whole:
        return Reason.ABORTED.say()
    logprobs = [] if answer.misaligned else answer.output_logprobs
    return why_misaligned(answer.output_ids, logprobs, [0]) or why_degenerate(answer.output_ids)
