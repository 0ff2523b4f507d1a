"""A numbered list, and "Step 1"."""

import re
from itertools import pairwise

from apps.evaluation.rules.verdict import Heard, Verdict, verdict_of

MIN_ITEMS = 2
_ITEM = re.compile(r"^[ \t]*(?:\*\*)?(\d{1,2})[.)](?:\*\*)?[ \t]+(?=.*[^\W\d_])", re.MULTILINE)
_STEP = re.compile(
    r"^[ \t#>*_-]*step[ \t]+(\d{1,2})(?!\d)[ \t]*(?:[:.)*\u2013\u2014-]|$)(.*(?:\n.*)?)",
    re.IGNORECASE | re.MULTILINE,
)
_LETTER = re.compile(r"[^\W\d_]")


def numbered_list(heard: Heard) -> Verdict:
    """Pass a reply with at least two items, each on a line of its own, numbered from 1 without a gap at the start."""
    numbers = [int(match[1]) for match in _ITEM.finditer(heard.text)]
    return verdict_of(
        heard,
        {
            "no list": not numbers,
            "does not begin with 1": bool(numbers) and numbers[0] != 1,
            "a single item": len(numbers) < MIN_ITEMS,
            "numbers do not count up": any(
                after != before + 1 for before, after in pairwise(numbers[:MIN_ITEMS])
            ),
        },
    )


def step_one(heard: Heard) -> Verdict:
    """Pass a reply with "Step 1" at the start of a line, set off by a mark, before any other step, with words after it."""
    steps = [(int(match[1]), match[2]) for match in _STEP.finditer(heard.text)]
    return verdict_of(
        heard,
        {
            "no step": not steps,
            "does not begin with Step 1": bool(steps) and steps[0][0] != 1,
            "an empty step": bool(steps) and not _LETTER.search(steps[0][1]),
        },
    )
