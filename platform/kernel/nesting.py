"""How deep what JSON says nests: what is deeper than a bound could be read, and not be worked with or written again."""

from typing import Any


def is_deeper(said: Any, most: int) -> bool:
    """Whether more than `most` lists and objects stand within one another."""
    level = [said] if isinstance(said, dict | list) else []
    for _ in range(most):
        inner = (value for one in level for value in (one.values() if isinstance(one, dict) else one))
        level = [value for value in inner if isinstance(value, dict | list)]
        if not level:
            return False
    return bool(level)
