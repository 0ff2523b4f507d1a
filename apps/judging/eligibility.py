"""Which turns are judged at all."""

from apps.conversations.models import Turn, TurnKind, TurnState


def why_not_judged(turn: Turn) -> str:
    """Return why a turn is never judged, or "" where it is (once it has its next state)."""
    if turn.kind == TurnKind.EVALUATION:
        return "evaluation"
    if turn.side:
        return "side turn"
    if turn.state == TurnState.ABORTED:
        return "aborted"
    if turn.state == TurnState.FAILED:
        return "failed"
    return ""
