"""Whether a reply goes round in circles."""

import re
from collections import Counter

WINDOW = 4
"""Words that are looked at together."""
MOST = 4
"""So often the same four words may stand in a reply of any length."""
SHARE = 0.5
"""At least so many of the windows must be different ones."""
_WORD = re.compile(r"\w+|[^\w\s]{3,}")


def is_loop(text: str) -> bool:
    """Return whether four words in a row come back more than `MOST` times, or most of the reply is repetition.

    The idea is that of the distinct-n measures (Li et al. 2016, "A Diversity-Promoting Objective Function").
    """
    words = _WORD.findall(text.casefold())
    windows = [tuple(words[start : start + WINDOW]) for start in range(len(words) - WINDOW + 1)]
    if len(windows) < 2 * WINDOW:
        return False
    counts = Counter(windows)
    return max(counts.values()) > MOST or len(counts) < SHARE * len(windows)
