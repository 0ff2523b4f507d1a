"""CSV: every sheet of the dashboard is written here, so that none carries a formula."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from django.http import StreamingHttpResponse

from kernel.streams import one_by_one

_TOGETHER = 500  # rows of a piece
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# where a list is separated by semicolons or tabs, a spreadsheet goes on after one of them as in a cell of its own
_WITHIN = re.compile("([;\t\r\n][ \u00a0\ufeff]*)(?=[=+\\-@\uff1d\uff0b\uff0d\uff20])")


def sheet(name: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> StreamingHttpResponse:
    """Return rows as a CSV file called `name`, below their head.

    The rows must not read the database later.
    """
    response = StreamingHttpResponse(one_by_one(_lines(head, rows)), content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def harmless(value: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula, whatever it separates cells by."""
    if not isinstance(value, str):
        return "" if value is None else value
    plain = _WITHIN.sub(r"\1'", value)
    return f"'{plain}" if value.lstrip(" \u00a0\ufeff").startswith(_FORMULA) else plain


class _Line:
    """A file whose `write` hands the line back."""

    def write(self, line: str) -> str:
        return line


def _lines(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    lines = csv.writer(_Line())
    yield lines.writerow(head)
    left = iter(rows)
    while some := list(islice(left, _TOGETHER)):
        yield "".join(lines.writerow([harmless(value) for value in row]) for row in some)
