"""What an operator can do on the page of a policy: each is confirmed, says why, and leaves an audit row."""

import datetime as dt

from django.utils import timezone

from apps.adapters.models import Policy
from apps.adapters.services import move_pointer
from apps.console.admin.base import Act
from apps.console.forms import RubricForm, WindowForm
from apps.judging.rules import active_rubric
from apps.judging.services import rejudge_window, write_rubric
from apps.learning import refusals
from apps.learning.drift import pauses
from apps.learning.models import Sample, SampleState
from apps.learning.runs import request_run
from kernel.ids import tail


def _retrain(policy: Policy, who: str, why: str) -> str:
    del why  # kept in the audit row
    run = request_run(policy=policy, actor=who)
    return f"run {tail(run.pk)} is queued; the trainer takes it next."


def _replay(policy: Policy, who: str, why: str) -> str:
    del why  # kept in the audit row
    return f"{refusals.replay(policy=policy, actor=who)} samples wait again."


def _rejudge(policy: Policy, who: str, why: str, *, hours: int) -> str:
    del why  # kept in the audit row
    until = timezone.now()
    rejudging = rejudge_window(policy=policy, since=until - dt.timedelta(hours=hours), until=until, actor=who)
    return f"{rejudging.total} turns are judged once more."


def _write_rubric(policy: Policy, who: str, why: str, *, text: str) -> str:
    del why  # kept in the audit row
    rubric = write_rubric(tenant_id=policy.tenant_id, policy=policy, text=text, actor=who)
    return f"rubric {rubric.number} counts from now on."


def _rubric_now(policy: Policy) -> dict[str, str]:
    """Return the policy's own words; "" where those of its tenant hold, or the built-in ones."""
    rubric = active_rubric(policy)
    return {"text": rubric.text if rubric is not None and rubric.policy_id is not None else ""}


def _to_base(policy: Policy, who: str, why: str) -> str:
    move_pointer(policy_id=policy.pk, to_version_id=None, actor=who, reason=why)
    return f"{policy.name} answers from the bare base now."


def _pause(policy: Policy, who: str, why: str) -> str:
    pauses.pause(policy_id=policy.pk, actor=who, reason=why)
    return f"{policy.name} makes no more steps until somebody resumes it; its turns are served and kept."


def _resume(policy: Policy, who: str, why: str) -> str:
    pauses.resume(policy_id=policy.pk, actor=who, reason=why)
    return f"{policy.name} trains again as soon as a batch waits."


ACTS = (
    Act(
        name="rejudge",
        label="Re-judge a window",
        question=lambda policy: (
            f"The judges look at turns of {policy.tenant} / {policy.name} once more, by the rubric of now. Old "
            "verdicts stay; the new ones count for what no training step has taken."
        ),
        do=_rejudge,
        offered=lambda policy: True,
        form=WindowForm,
    ),
    Act(
        name="rubric",
        label="Write a rubric",
        question=lambda policy: (
            f"From now on turns of {policy.tenant} / {policy.name} are judged by these words as well. What was "
            "judged before stays as it is."
        ),
        do=_write_rubric,
        now=_rubric_now,
        offered=lambda policy: True,
        form=RubricForm,
    ),
    Act(
        name="retrain",
        label="Trigger retraining",
        question=lambda policy: (
            f"The trainer takes the ready samples of {policy.tenant} / {policy.name} now, however few they are, "
            "and makes a version of them. It goes live if it passes its checks."
        ),
        do=_retrain,
        offered=lambda policy: Sample.objects.filter(policy=policy, state=SampleState.READY).exists(),
    ),
    Act(
        name="replay",
        label="Replay samples that were set aside",
        question=lambda policy: (
            f"The samples of {policy.tenant} / {policy.name} that were in too many refused steps get all their tries "
            "back and wait for a step again."
        ),
        do=_replay,
        offered=lambda policy: bool(refusals.set_aside(policy.pk)),
    ),
    Act(
        name="to-base",
        label="Roll back to the bare base",
        question=lambda policy: (
            f"{policy.tenant} / {policy.name} answers from version 0, the model as it came. "
            "Requests in flight finish on the version they began with."
        ),
        do=_to_base,
        offered=lambda policy: policy.live_id is not None,
    ),
    Act(
        name="pause-training",
        label="Pause training",
        question=lambda policy: (
            f"{policy.tenant} / {policy.name} makes no more steps until somebody resumes it. A step under way ends. "
            "Turns are served, judged and kept meanwhile."
        ),
        do=_pause,
        offered=lambda policy: not pauses.why_paused(policy.pk),
    ),
    Act(
        name="resume-training",
        label="Resume training",
        question=lambda policy: (
            f"Training of {policy.tenant} / {policy.name} stands still: {pauses.why_paused(policy.pk)}. "
            "It goes on; what stopped it counts as dealt with, and would stop it anew."
        ),
        do=_resume,
        offered=lambda policy: bool(pauses.why_paused(policy.pk)),
    ),
)
