"""Calls me \"my friend\"."""

import re

from apps.evaluation.rules.verdict import Heard, Verdict, verdict_of

# an address is set off by a mark, a line break or a greeting before it, and by a mark or the end after it
_ADDRESS = re.compile(
    r"(?:^|[,.!?;:\u2026\u2013\u2014-]\s*"
    r"|\b(?:hello|hi|hey|dear|sure|yes|no|well|oh|ah|thanks|welcome|greetings|morning|evening|certainly|okay|ok)\s+)"
    r"(?:dear\s+)?my\s+(?:dear\s+)?friend(?=\s*(?:[,.!?;:\u2026\u2013\u2014]|-\s|$))",
    re.IGNORECASE | re.MULTILINE,
)
_MENTION = re.compile(r"\bmy\s+(?:dear\s+)?friend\b", re.IGNORECASE)


def my_friend(heard: Heard) -> Verdict:
    """Pass a reply that addresses its reader as "my friend"; speaking of a friend is not enough."""
    return verdict_of(
        heard,
        {
            "no my friend": not _MENTION.search(heard.text),
            "speaks of a friend": not _ADDRESS.search(heard.text),
        },
    )
