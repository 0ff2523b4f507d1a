"""What every judge promises: one Protocol, and the plain data that goes in and comes out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kernel.errors import Unavailable

Message = Mapping[str, Any]

MAX_HINTS = 3
MIN_HINT_CHARACTERS = 11  # "longer than 10 characters"
MAX_HINT_CHARACTERS = 600


class JudgeUnavailable(Unavailable):
    """The judge did not answer at all.

    Asking again later may work. `votes`: what was tried, none of it valid.
    """

    code = "judge_unavailable"

    def __init__(self, message: str, *, votes: "tuple[CastVote, ...]" = ()) -> None:
        super().__init__(message)
        self.votes = votes


@dataclass(frozen=True, slots=True)
class TurnView:
    """What a judge sees of a turn: the request's messages, the reply, and everything that came after it."""

    request: tuple[Message, ...]
    reply: Message
    next_state: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class CastVote:
    """One answer: 1 good, -1 bad, 0 neutral, None abstained (then `abstained_because` says why)."""

    score: int | None
    text: str
    latency_ms: float
    tokens: int = 0
    """That the judge wrote."""
    abstained_because: str = ""
    prompt_tokens: int = 0
    """That the judge read."""


@dataclass(frozen=True, slots=True)
class FoundHint:
    """What would have improved the reply, in words that can stand in a prompt;
    `refused` says why it is not used."""

    text: str
    refused: str = ""
    by_user: bool = False
    """Whether nothing but what the user said is behind it: then it may be kept as that person's wish."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """Every vote of one judging, and the hints found, best first."""

    votes: tuple[CastVote, ...]
    hints: tuple[FoundHint, ...] = ()


class Judge(Protocol):
    """Anything that can say whether a reply was to its reader's liking."""

    @property
    def name(self) -> str:
        """Backend and model, as shown to people; at most 60 characters."""

    @property
    def prompt_version(self) -> str:
        """Changes whenever the same turn might be judged differently; at most 40 characters."""

    @property
    def votes(self) -> int:
        """How many votes a judging has."""

    @property
    def temperature(self) -> float:
        """What they are sampled at; 0 where there is nothing to sample."""

    @property
    def reads_rubric(self) -> bool:
        """Whether a tenant's rubric makes a difference."""

    @property
    def deadline_s(self) -> float:
        """`judge` returns or raises within this many seconds."""

    def judge(self, view: TurnView) -> Opinion:
        """Return the votes and hints. Raises JudgeUnavailable where nothing could be asked."""

    def most_tokens(self, view: TurnView) -> int:
        """Return the most tokens that judging this can cost, read and written; 0 where it costs nothing."""


def only_the_user_speaks(messages: Sequence[Message]) -> bool:
    """Return whether every one of these messages is the user's.

    What a tool returned may be a page of anybody's.
    """
    return bool(messages) and all(message.get("role") == "user" for message in messages)


def strict_majority(votes: tuple[CastVote, ...]) -> tuple[int, str]:
    """Return (reward, reason): the score that more than half of the valid votes share, else neutral."""
    valid = [vote.score for vote in votes if vote.score is not None]
    if not valid:
        return 0, "no valid vote"
    for score in (1, -1, 0):
        if 2 * valid.count(score) > len(valid):
            return score, ""
    return 0, "no majority"


def select_hints(hints: tuple[FoundHint, ...]) -> tuple[FoundHint, ...]:
    """Return the hints with reasons: too short, too long, repeated or one too many are refused."""
    kept: list[FoundHint] = []
    seen: set[str] = set()
    accepted = 0
    for hint in hints:
        text = " ".join(hint.text.split())
        same = " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())
        refused = hint.refused
        if not refused:
            if len(text) < MIN_HINT_CHARACTERS:
                refused = "too short"
            elif len(text) > MAX_HINT_CHARACTERS:
                refused = "too long"
            elif same in seen:
                refused = "says the same as another"
            elif accepted == MAX_HINTS:
                refused = f"more than {MAX_HINTS} hints"
            else:
                accepted += 1
        seen.add(same)
        kept.append(FoundHint(text=text, refused=refused, by_user=hint.by_user))
    return tuple(kept)
