"""Every page that the web answers with, found in its URLconf: so that a new one is measured without being named here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

LEFT_OUT = {
    "home": "leads to a tenant",
    "turn": "leads to a session",
    "first": "a stream",
    "runs_events": "a stream",
    "run_events": "a stream",
    "turn_json": "one row, as JSON",
    "download": "a file",
    "download_export": "a file",
    "audit_csv": "a file of at most 20,000 lines",
    "drift_csv": "a file of the last hundred readings of each gauge",
    "invitation": "one row, by a secret",
    "healthz": "asks for nothing",
    "favicon": "leads to a file",
}
"""Addresses of the dashboard that answer a GET with no page of rows, and what they answer with."""
MEANT = {
    "session_id": "session", "turn_id": "turn", "preference_id": "preference", "version_id": "version",
    "run_id": "run", "erasure_id": "erasure", "policy_id": "policy", "endpoint_id": "endpoint", "pk": "policy",
    "key_id": "key", "membership_id": "membership",
}  # fmt: skip
"""Which row an address's parameter names."""
QUERIES = {"delete": "subject=everything"}
"""What an address is asked that is no page without a query."""


@dataclass(frozen=True, slots=True)
class Page:
    """One address. `face` is `dashboard`, `api` or `console`: who is to ask."""

    face: str
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class _Route:
    face: str
    name: str
    route: str
    callback: Any


def every_page(tenant: str, ids: Mapping[str, Any]) -> list[Page]:
    """Return every list of the API and the console, and every page of the dashboard but for `LEFT_OUT`.

    `ids` has the row that stands for each of `MEANT`; a parameter that is not there is a KeyError: say what
    it means.
    """
    found = []
    for route in _routes(get_resolver().url_patterns):
        if _is_page(route):
            known = {"tenant": tenant, **{name: ids[kind] for name, kind in MEANT.items() if kind in ids}}
            path = "/" + re.sub(r"<\w+:(\w+)>", lambda one, known=known: str(known[one[1]]), route.route)
            if route.face == "dashboard" and route.name in QUERIES:
                path = f"{path}?{QUERIES[route.name]}"
            found.append(Page(route.face, route.name, path))
    return found


def answered() -> set[str]:
    """Return the names of the dashboard's addresses that answer a GET."""
    return {
        route.name
        for route in _routes(get_resolver().url_patterns)
        if route.face == "dashboard" and "GET" in _methods(route)
    }


def _routes(
    patterns: Iterable[URLPattern | URLResolver], before: str = "", face: str = ""
) -> Iterator[_Route]:
    for one in patterns:
        route = before + str(one.pattern)
        if isinstance(one, URLResolver):
            inner = {"admin": "console", "api": "api", "dashboard": "dashboard"}.get(one.app_name or "", face)
            yield from _routes(one.url_patterns, route, inner)
        elif face:
            yield _Route(face, one.name or "", route, one.callback)


def _is_page(route: _Route) -> bool:
    if route.face == "console":
        return route.name == "index" or route.name.endswith("_changelist")
    if route.face == "api":
        return getattr(route.callback, "actions", {}).get("get") == "list"
    return route.name not in LEFT_OUT and "GET" in _methods(route)


def _methods(route: _Route) -> str:
    """Return what an address of the dashboard may be asked: it says so to everybody."""
    zero = "00000000-0000-0000-0000-000000000000"
    path = re.sub(r"<(\w+):\w+>", lambda one: zero if one[1] == "uuid" else "x", route.route)
    # a view that leads elsewhere does so whatever it is asked
    return Client(headers={"host": "localhost"}).options(f"/{path}").headers.get("Allow", "GET")
