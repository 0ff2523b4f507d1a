"""Lists come newest first, a page at a time: a page costs the same wherever it is in the table."""

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlencode

from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest

M = TypeVar("M", bound=Model)
PAGE = 50
LOOKED = 2_000
"""Rows that one page looks through where a filter has no index:
what it costs does not grow with what does not fit."""


@dataclass(frozen=True, slots=True)
class Listed(Generic[M]):
    """Rows of one page, and the address's query for the next, or ""."""

    rows: Sequence[M]
    older: str
    looked: int = 0
    """Rows that were looked through, where that are not all and fewer than a page of them fit."""


def listed(request: HttpRequest, rows: QuerySet[M], *, size: int = PAGE) -> Listed[M]:
    """Return the page of `rows` that `?before=` names, or the newest;
    other parts of the query stay in `older`.

    The cursor is (created_at, id) of the last row that was seen, so new rows shift nothing.
    """
    found = list(_newest(_before(request, rows))[: size + 1])
    if len(found) <= size:
        return Listed(found, "")
    return Listed(found[:size], _query(request, "before", _place(found[size - 1])))


def searched(
    request: HttpRequest,
    rows: QuerySet[M],
    fitting: Callable[[QuerySet[M]], QuerySet[M]],
    *,
    size: int = PAGE,
    looked: int = LOOKED,
) -> Listed[M]:
    """Return as `listed` does those of `rows` that fit, of the next `looked` rows at most, however few do.

    A page that ends there with fewer than `size` says so (`looked`), and the next one goes on where it
    stopped.
    """
    rows = _before(request, rows)
    edge: list[Cursor] = list(_newest(rows).values_list("created_at", "pk")[looked - 1 : looked])
    if edge:
        when, row_id = edge[0]
        later = Q(created_at__gt=when) | Q(created_at=when, id__gte=row_id)
        page = rows.filter(created_at__gte=when).filter(later)
    else:
        page = rows
    found = list(_newest(fitting(page))[: size + 1])
    if len(found) > size:
        return Listed(found[:size], _query(request, "before", _place(found[size - 1])))
    if edge and _before_place(rows, edge[0]).exists():
        return Listed(found, _query(request, "before", edge[0]), looked)
    return Listed(found, "")


@dataclass(frozen=True, slots=True)
class Walked(Generic[M]):
    """Rows of one page, the oldest first, and the address's queries for the pages before and after it, or ""."""

    rows: Sequence[M]
    earlier: str
    later: str


def walked(request: HttpRequest, rows: QuerySet[M], *, size: int = PAGE) -> Walked[M]:
    """Return the page of `rows` after `?after=` or before `?before=`, or the first, the oldest first.

    The cursors are (created_at, id) of the rows at its ends.
    """
    if before := request.GET.get("before"):
        found = list(_newest(_before_place(rows, _read(before)))[: size + 1])[::-1]
        more, page = len(found) > size, found[-size:]
        ends = (more, True)
    else:
        after = request.GET.get("after")
        found = list(_after_place(rows, _read(after) if after else None)[: size + 1])
        page = found[:size]
        ends = (bool(after), len(found) > size)
    earlier = _query(request, "before", _place(page[0])) if page and ends[0] else ""
    return Walked(page, earlier, _query(request, "after", _place(page[-1])) if page and ends[1] else "")


def _after_place(rows: QuerySet[M], place: "Cursor | None") -> QuerySet[M]:
    rows = rows.order_by("created_at", "id")
    if place is None:
        return rows
    when, row_id = place
    later = Q(created_at__gt=when) | Q(created_at=when, id__gt=row_id)
    return rows.filter(created_at__gte=when).filter(later)


def page_with(rows: QuerySet[M], row: M, *, size: int = PAGE) -> str:
    """Return the query of a page of `walked` that has the row: "" where that is the first page."""
    earlier = list(_newest(_before_place(rows, _place(row)))[:size])
    return f"?{urlencode({'after': _written(_place(earlier[0]))})}" if len(earlier) == size else ""


Cursor = tuple[dt.datetime, uuid.UUID]


def _newest(rows: QuerySet[M]) -> QuerySet[M]:
    return rows.order_by("-created_at", "-id")


def _before(request: HttpRequest, rows: QuerySet[M]) -> QuerySet[M]:
    cursor = request.GET.get("before")
    return _before_place(rows, _read(cursor)) if cursor else rows


def _before_place(rows: QuerySet[M], place: Cursor) -> QuerySet[M]:
    when, row_id = place
    earlier = Q(created_at__lt=when) | Q(created_at=when, id__lt=row_id)
    # the first condition alone is what the index is walked by
    return rows.filter(created_at__lte=when).filter(earlier)


def _place(row: Model) -> Cursor:
    return row.created_at, row.pk  # type: ignore[attr-defined]


def _query(request: HttpRequest, name: str, place: Cursor) -> str:
    """Return the query of the page that ends before a place (`before`) or begins after it (`after`);
    its other parts stay."""
    query = request.GET.copy()
    for one in ("before", "after"):
        query.pop(one, None)
    query[name] = _written(place)
    return f"?{query.urlencode()}"


def _written(place: Cursor) -> str:
    when, row_id = place
    return f"{when.isoformat()}~{row_id}"


def _read(cursor: str) -> Cursor:
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
    """Return the word that a filter of the query names, or "";
    raise Http404 for one that is none of `allowed`."""
    value = request.GET.get(name, "")
    if value and value not in allowed:
        raise Http404
    return value
