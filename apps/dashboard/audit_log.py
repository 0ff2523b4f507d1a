"""The audit log of a tenant, filtered by who did what to what and when: a page of it, and as CSV."""

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.utils.dateparse import parse_date
from django.views.decorators.http import require_safe

from apps.dashboard.actors import meant, named
from apps.dashboard.lists import Listed, listed, searched
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.sheets import sheet
from kernel.models import AuditEntry
from kernel.rest.caller import Access

MOST_LINES = 20_000
"""Of the audit log as CSV; the export holds all of it."""
_TEXT = 200
_COLUMNS = {"who": "actor", "did": "action", "to": "target"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a query asks of the log: the texts of its filters, "" where there is none."""

    chosen: Mapping[str, str]
    rows: QuerySet[AuditEntry]
    """Those of the time that was asked for, in which an index leads."""

    meant: Mapping[str, frozenset[str]]
    """By filter: whom and what its text names, as the log calls them."""

    def fitting(self, rows: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """Return those whose actor, action and target are called so or begin with what was asked for:
        no index leads to these."""
        for name, column in _COLUMNS.items():
            if self.chosen[name]:
                wanted = Q(**{f"{column}__startswith": self.chosen[name]})
                if self.meant.get(name):
                    wanted |= Q(**{f"{column}__in": sorted(self.meant[name])})
                rows = rows.filter(wanted)
        return rows

    def page(self, request: HttpRequest) -> Listed[AuditEntry]:
        """Return the page that the query names."""
        if any(self.chosen[name] for name in _COLUMNS):
            return searched(request, self.rows, self.fitting)
        return listed(request, self.rows)


def asked_of(request: HttpRequest, place: Place) -> Asked:
    """Return what a query asks; raise Http404 for a day that is none."""
    names = (*_COLUMNS, "since", "until")
    chosen = {name: request.GET.get(name, "").strip()[:_TEXT] for name in names}
    rows = AuditEntry.objects.filter(tenant_id=place.tenant.pk)
    if since := _day(chosen["since"]):
        rows = rows.filter(created_at__gte=since)
    if until := _day(chosen["until"]):
        rows = rows.filter(created_at__lt=until + dt.timedelta(days=1))
    return Asked(chosen, rows, {name: frozenset(meant(chosen[name])) for name in ("who", "to")})


@require_safe
@tenant_page(needs=Access.MANAGE)
def audit_csv(request: HttpRequest, place: Place) -> HttpResponseBase:
    """Send the audit log, as it is filtered, as CSV: the newest rows."""
    asked = asked_of(request, place)
    names = ("created_at", "actor", "action", "target", "detail")
    found = list(asked.fitting(asked.rows).order_by("-created_at", "-id").values_list(*names)[:MOST_LINES])
    words = named(place, {one for _, who, _, to, _ in found for one in (who, to)})
    return sheet(
        f"{place.tenant.slug}-audit",
        ["time", "who", "who_named", "did", "to", "to_named", "more"],
        [
            (
                when.astimezone(dt.UTC).isoformat(),
                *(who, words.get(who, "")),
                did,
                *(to, words.get(to, "")),
                json.dumps(detail, ensure_ascii=False),
            )
            for when, who, did, to, detail in found
        ],
    )


def _day(value: str) -> dt.datetime | None:
    """Return the beginning of a day, UTC; raise Http404 for what is none."""
    if not value:
        return None
    try:
        day = parse_date(value)
    except ValueError as error:
        raise Http404 from error
    if day is None or not 1970 < day.year < 9000:
        raise Http404
    return dt.datetime.combine(day, dt.time(), dt.UTC)
