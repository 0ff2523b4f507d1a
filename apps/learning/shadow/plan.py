"""What a policy's shadow rollouts would answer next, or why they wait.

Every reason is one that people may read.
"""

import datetime as dt
import random
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from apps.adapters.models import AdapterVersion, Policy
from apps.conversations.models import Turn, TurnKind
from apps.learning import schedule
from apps.learning.config import resolve
from apps.learning.drift.pauses import why_paused
from apps.learning.models import OPEN_RUN_STATES, TrainingRun
from apps.learning.shadow.questions import Question, teaching_questions
from apps.learning.waiting import waiting
from apps.memory.lessons import Standing, current_lesson, end_lessons, standing
from apps.memory.models import Lesson, LessonState
from apps.memory.selectors import setting_of
from apps.memory.use import use_of
from kernel.errors import InvalidInput

UNDER_WAY = "a step is under way"
_IF_GREEDY = 1.0
_DAY = dt.timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Wave:
    """Replies to be written by the live version without being told, for one step."""

    policy: Policy
    version: AdapterVersion | None
    lesson: Lesson
    stands: Standing
    questions: tuple[Question, ...]
    """One for each reply; the same one may come twice."""

    @property
    def temperature(self) -> float:
        """Return what replies are sampled with: as people's are, so that what is taught is what is served."""
        return self.policy.temperature or _IF_GREEDY


def next_wave(policy: Policy) -> Wave | str:
    """Return what is to be answered now, or why nothing is.

    `policy` comes with its tenant and live version.
    """
    why = _why_not(policy)
    if why:
        return why
    stands = standing(policy)
    if isinstance(stands, str):
        end_lessons(policy, stands)
        return stands
    lesson = current_lesson(policy, stands)
    missing = resolve(policy.config).batch_size - waiting(policy, shadow=True).count()
    questions = teaching_questions(policy, stands.person)
    why = _why_idle(lesson, missing, questions)
    if why:
        return why
    with transaction.atomic():
        if schedule.consider(policy_id=policy.pk, quiet=True) is not None:
            return UNDER_WAY
    turns = Turn.objects.filter(policy=policy, kind=TurnKind.SHADOW).count()
    return Wave(policy, policy.live, lesson, stands, _drawn(questions, missing, seed=f"{lesson.key}{turns}"))


def _why_idle(lesson: Lesson, missing: int, questions: list[Question]) -> str:
    if lesson.state == LessonState.HELD:
        return "the weights hold all that is wanted"
    if lesson.state == LessonState.PLATEAU:
        return lesson.reason or "several versions in a row were no better"
    if missing <= 0:
        return "a batch waits for its step"
    return "" if questions else "no question may be asked"


def tokens_today(policy: Policy) -> int:
    """Return how many tokens shadow rollouts of a policy, and choosing its versions,
    wrote in the last 24 hours."""
    since = timezone.now() - _DAY
    turns = Turn.objects.filter(policy=policy, kind=TurnKind.SHADOW, created_at__gte=since)
    return (turns.aggregate(n=Sum("output_ids__len"))["n"] or 0) + _choosing_tokens(policy, since)


def _choosing_tokens(policy: Policy, since: dt.datetime) -> int:
    """Return how many tokens were written to measure what versions are chosen by: each figure says when."""
    lessons = Lesson.objects.filter(policy=policy, changed_at__gte=since).values_list("figures", flat=True)
    measured = [
        one for figures in lessons for one in (figures.get("yardstick", {}), *figures.get("course", ()))
    ]
    return sum(one["written"] for one in measured if one.get("at", "") >= since.isoformat())


def why_not_taught(policy: Policy) -> str:
    """Return why nothing may be asked of an engine to teach the policy now, or "".

    It keeps a step from beginning; a version that one made is chosen all the same.
    """
    use = use_of(setting_of(policy.pk))
    most = use.shadow_tokens_per_day
    why = ""
    if not use.shadow:
        why = "shadow rollouts are switched off"
    elif policy.tenant.is_paused:
        why = f"the tenant is paused: {policy.tenant.pause_reason}"
    elif not (policy.training_enabled and policy.tenant.training_enabled):
        why = "training is switched off"
    elif paused := why_paused(policy.pk):
        why = f"training is paused: {paused}"
    elif not use.teaches_at(timezone.now().hour):
        why = f"only from {use.shadow_from_hour} to {use.shadow_until_hour} o'clock UTC"
    elif tokens_today(policy) >= most:
        why = f"the budget of {most} tokens a day is used up"
    return why or _why_no_hints(policy)


def _why_not(policy: Policy) -> str:
    return why_not_taught(policy) or (UNDER_WAY if step_is_under_way(policy) else "")


def _why_no_hints(policy: Policy) -> str:
    try:
        config = resolve(policy.config)
    except InvalidInput as error:
        return error.message
    return "the policy learns from rewards alone" if config.method == "binary" else ""


def step_is_under_way(policy: Policy) -> bool:
    """Return whether a batch is trained on, or a version that came of one waits to be chosen."""
    training = TrainingRun.objects.filter(policy=policy, state__in=OPEN_RUN_STATES)
    return schedule.awaits_publishing(policy) or training.exists()


def _drawn(questions: list[Question], count: int, *, seed: str) -> tuple[Question, ...]:
    """Return `count` questions, each about as often as every other."""
    order = random.Random(seed)  # noqa: S311
    drawn: list[Question] = []
    while len(drawn) < count:
        drawn += order.sample(questions, len(questions))
    return tuple(drawn[:count])
