"""What was made of a turn (judgements, votes, hints), by which rules, at what cost, and who takes no part."""

from apps.judging.models.rules import (
    MAX_RUBRIC_CHARACTERS,
    MAX_VOTES,
    JudgeSettings,
    JudgeSpend,
    OptOut,
    PersonalData,
    Rubric,
)
from apps.judging.models.verdicts import (
    MAX_REWARD,
    Hint,
    Judgement,
    JudgementSource,
    JudgementState,
    Rejudging,
    RejudgingState,
    Trajectory,
    Vote,
)

__all__ = [
    "MAX_REWARD",
    "MAX_RUBRIC_CHARACTERS",
    "MAX_VOTES",
    "Hint",
    "JudgeSettings",
    "JudgeSpend",
    "Judgement",
    "JudgementSource",
    "JudgementState",
    "OptOut",
    "PersonalData",
    "Rejudging",
    "RejudgingState",
    "Rubric",
    "Trajectory",
    "Vote",
]
