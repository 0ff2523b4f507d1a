"""What changes sessions and turns."""

from apps.conversations.services.admission import (
    Admitted,
    Repeated,
    TurnRequest,
    admit_turn,
    find_repeated_turn,
)
from apps.conversations.services.feedback import give_feedback
from apps.conversations.services.outcome import Generation, abort_turn, complete_turn, fail_turn
from apps.conversations.services.upkeep import close_idle_sessions, fail_lost_turns

__all__ = [
    "Admitted",
    "Generation",
    "Repeated",
    "TurnRequest",
    "abort_turn",
    "admit_turn",
    "close_idle_sessions",
    "complete_turn",
    "fail_lost_turns",
    "fail_turn",
    "find_repeated_turn",
    "give_feedback",
]
