"""Lists come newest first, a page at a time: a page costs the same wherever it is in the table."""

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest

M = TypeVar("M", bound=Model)
PAGE = 50


@dataclass(frozen=True, slots=True)
class Listed(Generic[M]):
    """Rows of one page, and the address's query for the next, or ""."""

    rows: Sequence[M]
    older: str


def listed(request: HttpRequest, rows: QuerySet[M], *, size: int = PAGE) -> Listed[M]:
    """Return the page of `rows` that `?before=` names, or the newest; other parts of the query stay in `older`.

    The cursor is (created_at, id) of the last row that was seen, so new rows shift nothing.
    """
    if cursor := request.GET.get("before"):
        when, row_id = _read(cursor)
        earlier = Q(created_at__lt=when) | Q(created_at=when, id__lt=row_id)
        # the first condition alone is what the index is walked by
        rows = rows.filter(created_at__lte=when).filter(earlier)
    found = list(rows.order_by("-created_at", "-id")[: size + 1])
    if len(found) <= size:
        return Listed(found, "")
    query = request.GET.copy()
    last = found[size - 1]
    query["before"] = f"{last.created_at.isoformat()}~{last.pk}"  # type: ignore[attr-defined]
    return Listed(found[:size], f"?{query.urlencode()}")


def _read(cursor: str) -> tuple[dt.datetime, uuid.UUID]:
    when, _, row_id = cursor.partition("~")
    try:
        moment, key = dt.datetime.fromisoformat(when), uuid.UUID(row_id)
        if moment.tzinfo is None:
            raise Http404
        return moment.astimezone(dt.UTC), key
    except (ValueError, OverflowError) as error:  # before the first year, or after the last, in UTC
        raise Http404 from error


def chosen_id(request: HttpRequest, name: str) -> uuid.UUID | None:
    """Return the id that a filter of the query names, or None; raise Http404 for what is no id."""
    value = request.GET.get(name, "")
    try:
        return uuid.UUID(value) if value else None
    except ValueError as error:
        raise Http404 from error


def chosen_word(request: HttpRequest, name: str, allowed: Sequence[str]) -> str:
    """Return the word that a filter of the query names, or ""; raise Http404 for one that is none of `allowed`."""
    value = request.GET.get(name, "")
    if value and value not in allowed:
        raise Http404
    return value
