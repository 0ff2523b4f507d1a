"""What changes sessions and turns."""

from apps.conversations.holders import ending_lost
from apps.conversations.retries import Repeated
from apps.conversations.services.admission import Admitted, TurnRequest, admit_turn, admitting, place_asked
from apps.conversations.services.feedback import give_feedback
from apps.conversations.services.outcome import (
    Generation,
    abort_turn,
    aborting,
    complete_turn,
    completing,
    fail_turn,
    failing,
    moved,
)
from apps.conversations.services.upkeep import close_idle_sessions, fail_lost_turns

__all__ = [
    "Admitted",
    "Generation",
    "Repeated",
    "TurnRequest",
    "abort_turn",
    "aborting",
    "admit_turn",
    "admitting",
    "close_idle_sessions",
    "complete_turn",
    "completing",
    "ending_lost",
    "fail_lost_turns",
    "fail_turn",
    "failing",
    "give_feedback",
    "moved",
    "place_asked",
]
