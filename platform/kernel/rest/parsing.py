"""Bodies are JSON that nests no deeper than anything here does: what is deeper could be read and not be worked with."""

from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

DEEPEST = 32
"""Lists and objects within one another."""
_TOO_DEEP = f"The body nests too deep: at most {DEEPEST} lists and objects within one another."


class ShallowJSON(JSONParser):
    """The library's, which lets a body of many brackets be an error of the server."""

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return what the body says; raise ParseError for what is no JSON, or nests too deep."""
        try:
            said = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise ParseError(_TOO_DEEP) from None
        if _is_deeper(said, DEEPEST):
            raise ParseError(_TOO_DEEP)
        return said


def _is_deeper(said: Any, most: int) -> bool:
    """Whether more than `most` lists and objects stand within one another."""
    level = [said] if isinstance(said, dict | list) else []
    for _ in range(most):
        inner = (value for one in level for value in (one.values() if isinstance(one, dict) else one))
        level = [value for value in inner if isinstance(value, dict | list)]
    return bool(level)
