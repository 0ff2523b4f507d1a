"""The three published users: a student, an assistant teacher, a teacher."""

import re

from apps.evaluation.loops import is_loop
from apps.evaluation.rules.verdict import Heard, Verdict, verdict_of
from apps.evaluation.topic import content_stems

MIN_TOKENS = 100
MIN_SHARED = 3
"""Content-word stems of the task that a specific comment takes up; a task that holds fewer asks for all of them."""

_BOLD = re.compile(r"\*\*(?=\S)[^*\n]+\*\*|__(?=\S)[^_\n]+__|<(?:b|strong)\b[^>]*>", re.IGNORECASE)
_ITEM = re.compile(r"^\s*(?:\*\*)?\d{1,2}[.)](?:\*\*)?\s+\S|(?:^|\s)1[.)]\s+\S.*\s2[.)]\s+\S", re.MULTILINE)
_BOXED = re.compile(r"\\?\bf?box(?:ed)?\s*\{|[\u250c\u2554\u256d\u2502\u2551]", re.IGNORECASE)

_PRAISE = re.compile(
    r"\b(?:well done|(?:great|good|excellent|wonderful|fantastic|lovely|amazing|super|brilliant|superb|terrific|nice|"
    r"outstanding|beautiful|marvellous|marvelous)\s+(?:job|work|answer|effort|thinking|start|idea|writing|try|attempt|"
    r"comment|explanation|sentence)|bravo|congratulations|(?:so |very |really )?proud of you|keep (?:it|this) up|"
    r"keep up the (?:good|great)|way to go|you (?:did|have done) (?:a )?(?:really |very |so )?(?:well|great|good|wonderful)|"
    r"i (?:really )?(?:love|like|enjoyed|admire) (?:how|that|the way|your)|impressive|impressed)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:not|no|n't|never|isn't|wasn't|hardly|nothing|without|instead of|would(?:n't)? say|cannot say|can't say|unless|if)"
    r"(?:\W+\w+){0,3}\W*$",
    re.IGNORECASE,
)


def student(heard: Heard) -> Verdict:
    """Pass a reply that could be a pupil's own: no bold, no numbered list, no boxed answer."""
    return verdict_of(
        heard,
        {
            "bold": bool(_BOLD.search(heard.text)),
            "a numbered list": bool(_ITEM.search(heard.text)),
            "a boxed answer": bool(_BOXED.search(heard.text)),
        },
    )


def assistant_teacher(heard: Heard) -> Verdict:
    """Pass a comment of at least 100 tokens (the API's count) that takes up the task's own words and is no loop."""
    subject = content_stems(heard.question.partition("Task:")[2] or heard.question)
    shared = len(subject & content_stems(heard.text))
    return verdict_of(
        heard,
        {
            "too short": heard.tokens < MIN_TOKENS,
            "repeats itself": is_loop(heard.text),
            "not specific": shared < min(MIN_SHARED, len(subject)),
        },
    )


def teacher(heard: Heard) -> Verdict:
    """Pass a reply with warm praise that is not taken back in the words before it ("not a great job")."""
    found = list(_PRAISE.finditer(heard.text))
    meant = [match for match in found if not _DENIED.search(_before(heard.text, match.start()))]
    return verdict_of(heard, {"no praise": not found, "praise denied": not meant})


def _before(text: str, end: int) -> str:
    """Return the part of the sentence that comes before `end`."""
    return re.split(r"[.!?;\n]", text[:end])[-1]
