"""What changes judgements, and what shapes them."""

from apps.judging.services.asking import ask_for_judgement, ask_for_sample
from apps.judging.services.judgements import ATTEMPTS, judge
from apps.judging.services.operators import change_judging, override, replay, write_rubric
from apps.judging.services.outcomes import open_trajectory, record_outcome
from apps.judging.services.windows import cancel_rejudging, rejudge_some, rejudge_window

__all__ = [
    "ATTEMPTS",
    "ask_for_judgement",
    "ask_for_sample",
    "cancel_rejudging",
    "change_judging",
    "judge",
    "open_trajectory",
    "override",
    "record_outcome",
    "rejudge_some",
    "rejudge_window",
    "replay",
    "write_rubric",
]
