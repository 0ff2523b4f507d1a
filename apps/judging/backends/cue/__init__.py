"""The cue judge: deterministic, no model. It weighs cues in what came next, and says which ones it saw."""

import time

from apps.judging.backends.cue.cues import Cue
from apps.judging.backends.cue.tools import tool_cues
from apps.judging.backends.cue.weighing import weigh
from apps.judging.backends.cue.wishes import wishes
from apps.judging.judge import CastVote, FoundHint, Message, Opinion, TurnView

BAD_AT = -1.2
GOOD_AT = 0.9


class CueJudge:
    """The embedded default. One vote: asking a rule twice gives the same answer twice."""

    name = "cue-deterministic"
    prompt_version = "cues-4"
    votes = 1
    temperature = 0.0
    reads_rubric = False
    deadline_s = 10.0

    def most_tokens(self, view: TurnView) -> int:
        """Return 0: it asks nobody."""
        del view
        return 0

    def judge(self, view: TurnView) -> Opinion:
        """Weigh the next state; where it finds fault, what it asks for is the hint,
        in the user's own words."""
        started = time.perf_counter()
        said = "\n".join(text_of(message) for message in view.next_state if message.get("role") == "user")
        results = [text_of(message) for message in view.next_state if message.get("role") == "tool"]
        asked = next((text_of(m) for m in reversed(view.request) if m.get("role") == "user"), "")
        cues = weigh(said, asked=asked, reply=text_of(view.reply))
        by_user = verdict(cues)
        score = by_user
        if by_user == 0 and results:
            cues = [*cues, *tool_cues(results)]
            score = verdict(cues)
        vote = CastVote(
            score=score, text=explain(score, cues), latency_ms=(time.perf_counter() - started) * 1e3
        )
        # of the user's messages alone, whatever else came next
        asks_for = wishes(said, asked=asked) if by_user < 0 else ()
        hints = tuple(FoundHint(text, by_user=True) for text in asks_for)
        return Opinion(votes=(vote,), hints=hints)


def verdict(cues: list[Cue]) -> int:
    """Return 1, -1 or 0 for the sum of the cues' weights."""
    total = sum(cue.weight for cue in cues)
    return -1 if total <= BAD_AT else 1 if total >= GOOD_AT else 0


def explain(score: int, cues: list[Cue]) -> str:
    """Return the vote in words, with each cue and its weight."""
    word = {1: "good", -1: "bad", 0: "neutral"}[score]
    seen = ", ".join(f"{cue.name} {cue.weight:+.1f}" for cue in cues) or "no cue"
    return f"{word} (deterministic cues: {seen})"


def text_of(message: Message) -> str:
    """Return a message's text; parts of a list are joined."""
    content = message.get("content")
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")
