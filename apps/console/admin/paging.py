"""What a list of the console costs: its page, however many rows there are.

Rows are counted up to a bound, come in order of time and no other where they grow with the traffic, and older
ones are reached by when they were made: their ids carry that, so the time is a place in the primary key.
"""

import datetime as dt
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ORDER_VAR
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import cached_property

from kernel.ids import first_id_at, made_at

if TYPE_CHECKING:  # unfold's class is Django's with other templates, and is not typed
    from django.contrib.admin.views.main import ChangeList as _ChangeList

    _Paginator = Paginator[Any]
else:
    from unfold.views import ChangeList as _ChangeList

    _Paginator = Paginator

MOST_PAGES = 40


class FirstPages(_Paginator):
    """The first `MOST_PAGES` pages; no row past them is counted or can be asked for."""

    template_name = "console/pages.html"

    @property
    def most(self) -> int:
        """How many rows these pages can hold."""
        return self.per_page * MOST_PAGES

    @cached_property
    def _found(self) -> int:
        rows = self.object_list
        assert isinstance(rows, QuerySet)  # noqa: S101  # a change list's
        return rows.order_by().values("pk")[: self.most + 1].count()

    @cached_property
    def count(self) -> int:
        """How many rows these pages hold."""
        return min(self._found, self.most)

    @property
    def more(self) -> bool:
        """Whether there are rows past these pages."""
        return self._found > self.most


class FirstPagesList(_ChangeList):
    """A change list that does not say how many rows there are where they were not counted."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        """Return the order; a query that asks for another one is heeded where columns can be sorted by."""
        if not self.sortable_by:
            self.params.pop(ORDER_VAR, None)
        return super().get_ordering(request, queryset)

    def get_results(self, request: HttpRequest) -> None:
        """Find the page's rows."""
        super().get_results(request)
        if getattr(self.paginator, "more", False):
            self.full_result_count = self.result_count
        page: Any = self.model_admin  # a ConsoleAdmin, which uses this list
        page.with_names(self.result_list)


class Made(admin.SimpleListFilter):
    """When rows were made: a year, one of its months or one of its days. One query, by the primary key."""

    title = "made"
    parameter_name = "made"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Name the years, the months of the one that was chosen, and the days of the month that was."""
        rows = model_admin.get_queryset(request)
        first = rows.order_by("pk").values_list("pk", flat=True).first()
        if first is None or first.version != 7:
            return []
        since, now = made_at(first), timezone.now()
        years = [str(year) for year in range(since.year, now.year + 1)]
        year, month = (self.value() or "")[:4] or years[0], (self.value() or "")[:7]
        found = list(years)
        if self.value() or len(years) == 1:
            found += [f"{year}-{number:02}" for number in range(1, 13)]
        if span := _span(month, "%Y-%m"):
            found += [f"{month}-{number:02}" for number in range(1, (span[1] - span[0]).days + 1)]
        inside = (f"{since:%Y-%m-%d}", f"{now:%Y-%m-%d}")
        return [(one, one) for one in found if inside[0][: len(one)] <= one <= inside[1][: len(one)]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows of that time."""
        del request
        chosen = self.value()
        if not chosen:
            return queryset
        span = next(filter(None, (_span(chosen, form) for form in _FORMS)), None)
        if span is None:
            raise IncorrectLookupParameters(f"{chosen!r} is no year, month or day")
        return queryset.filter(pk__gte=first_id_at(span[0]), pk__lt=first_id_at(span[1]))


_FORMS = {"%Y": 366, "%Y-%m": 31, "%Y-%m-%d": 1}  # and the most days of such a span


def _span(word: str, form: str) -> tuple[dt.datetime, dt.datetime] | None:
    """Return the beginning and the end (exclusive), UTC, of a year, month or day; None for what is none."""
    try:
        since = dt.datetime.strptime(word, form).replace(tzinfo=dt.UTC)
    except ValueError:
        return None
    if not 1970 <= since.year < 9000:
        return None
    # some day of the next span, and back to that one's first
    until = since + dt.timedelta(days=_FORMS[form])
    if form == "%Y":
        until = until.replace(month=1)
    return since, until if form == "%Y-%m-%d" else until.replace(day=1)
