"""Bodies are JSON that nests no deeper than anything here does: what is deeper could be read and not be worked with."""

from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from kernel.nesting import is_deeper

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
        if is_deeper(said, DEEPEST):
            raise ParseError(_TOO_DEEP)
        return said
