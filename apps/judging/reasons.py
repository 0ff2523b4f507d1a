"""Why a turn taught its policy nothing, or less than it could have: every reason there is, in one place."""

from enum import StrEnum

SEPARATOR = ": "
LONGEST = 200  # characters of a stored reason


class Reason(StrEnum):
    """A code that is stored and counted; `words` says to a tenant what it means.

    A stored reason is the code alone, or the code, a colon and the particulars.
    """

    def __new__(cls, code: str, words: str) -> "Reason":
        """Make a member whose value is the code."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.words = words
        return member

    words: str

    # said of the turn itself
    EVALUATION = "evaluation", "It was asked to measure the policy, so the policy may not learn it."
    CHOOSING = (
        "choosing question",
        "It asks what versions are chosen by: one that had learned the answer would be measured by what it knows already.",
    )
    SIDE = (
        "side turn",
        "The client marked it as beside the conversation: served and stored, never trained on.",
    )
    ABORTED = "aborted", "The client hung up before the reply was whole."
    FAILED = "failed", "No whole reply came about."
    OPTED_OUT = (
        "opted out",
        "The tenant, the policy, the user or the end user does not take part in training.",
    )
    EMPTY = "empty reply", "The reply holds no token."
    MISALIGNED = (
        "misaligned",
        "Tokens and log-probabilities do not fit each other; nothing is made up for them.",
    )
    DEGENERATE = "degenerate", "The reply loops or repeats a token: nothing is learned from it but the loop."
    PERSONAL_DATA = "personal data", "Personal data was found where the policy's setting does not allow it."
    # said of how it was sampled: a reward cannot be used, hints can
    TRUNCATED = (
        "truncated",
        "The reply was cut by the length limit: it carries no reward, hints may teach on it.",
    )
    GREEDY = (
        "greedy",
        "Sampled at temperature 0: there is no distribution to compare with. Hints may teach on it.",
    )
    DISTORTED = (
        "distorted",
        (
            "Sampling parameters besides the temperature shaped the distribution, which cannot be corrected for. "
            "Hints may teach on it."
        ),
    )
    # said of what was said of it
    NO_NEXT_STATE = "no next state", "Nothing came after the reply before the conversation was over."
    EDITED = (
        "edited reply",
        "The client changed the reply before it went on: what came next is about a text that the model did not write.",
    )
    NO_SIGNAL = "no signal", "What came next says neither good nor bad of the reply, and gives no hint."
    # said by the schedule and the trainer
    OTHER_BRANCH = "other branch", "The version that wrote it lies on a branch that was rolled back."
    UNWANTED = "no longer wanted", "The preference that it would have taught was changed or deleted."
    STALE = "stale", "Too many steps were made since the version that wrote it."
    QUARANTINED = "quarantined", "Steps with it in the batch were thrown away too often."
    NOT_TAKEN = "not taken", "The trainer could make nothing of it, or the step it was in changed nothing."
    ERROR = "error", "An error in the platform; an operator can see it."

    def say(self, particulars: str = "") -> str:
        """Return the reason as it is stored, within its limit."""
        return f"{self.value}{SEPARATOR}{particulars}"[:LONGEST] if particulars else self.value


def reason_of(stored: str) -> Reason | None:
    """Return which reason a stored text gives, or None where it is none of them."""
    code = stored.split(SEPARATOR, 1)[0]
    return next((reason for reason in Reason if reason.value == code), None)


def explained(stored: str) -> str:
    """Return what a stored reason means, in a sentence; "" where it is none of the known ones."""
    reason = reason_of(stored)
    return reason.words if reason is not None else ""
