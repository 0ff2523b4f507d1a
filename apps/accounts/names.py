"""Names that clients give, of their end users and of what they ask: each may go into a header or a log."""

import re

NAME = r"^[!-~]([ -~]*[!-~])?\Z"
"""Printable ASCII characters, no space around them."""
LONGEST_END_USER = 200
"""Characters of an end user's name."""


def is_name(value: str, *, longest: int) -> bool:
    """Return whether `value` has 1 to `longest` characters, all printable ASCII, none of them outer space."""
    return len(value) <= longest and re.match(NAME, value) is not None
