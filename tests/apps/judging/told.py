"""A judge that says what it is told."""

import time
from dataclasses import dataclass, field

from apps.judging.judge import CastVote, FoundHint, JudgeUnavailable, Opinion, TurnView


@dataclass
class Told:
    """Counts how often it is asked; `away`: it does not answer."""

    scores: tuple[int | None, ...] = (-1, -1, 1)
    hints: tuple[str, ...] = ("Answer in one short sentence.",)
    away: bool = False
    pause_s: float = 0.0
    name: str = "told"
    prompt_version: str = "1"
    temperature: float = 0.6
    reads_rubric: bool = True
    deadline_s: float = 5.0
    most: int = 0
    asked: list[TurnView] = field(default_factory=list)

    @property
    def votes(self) -> int:
        return len(self.scores)

    def most_tokens(self, view: TurnView) -> int:
        del view
        return self.most

    def judge(self, view: TurnView) -> Opinion:
        self.asked.append(view)
        time.sleep(self.pause_s)
        if self.away:
            raise JudgeUnavailable(
                "nobody there", votes=(CastVote(None, "", 3.0, abstained_because="refused"),)
            )
        votes = tuple(
            CastVote(
                score,
                f"vote {score}",
                1.0,
                5 if self.most else 0,
                "" if score is not None else "answer is not JSON",
                10 if self.most else 0,
            )
            for score in self.scores
        )
        return Opinion(votes, tuple(FoundHint(hint) for hint in self.hints))
