"""Every address is a page with pictures that a browser test takes, or known to be none."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib import admin
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from tests.apps.console.rows import Rows
from tests.apps.dashboard.conftest import browser
from tests.apps.dashboard.test_pages import addresses
from tests.browser.routes import (
    ACCOUNT,
    CONSOLE,
    CONSOLE_ACTS,
    DASHBOARD,
    ERRORS,
    NO_PAGES,
    PAGES,
    TYPICAL_ACTS,
    WITHOUT_PICTURES,
    variants,
)

PICTURES = Path(settings.BASE_DIR) / "docs" / "pages"


def named(resolver: URLResolver, within: str = "") -> Iterator[str]:
    """Yield the full names of the routes below a resolver;
    the console's and the REST interface's are not among them."""
    for one in resolver.url_patterns:
        if isinstance(one, URLPattern):
            if one.name is not None:
                yield f"{within}{one.name}"
        elif str(one.pattern) not in {"console/", "api/"}:
            yield from named(one, f"{one.namespace}:" if one.namespace else within)


def test_every_route_has_its_pictures_or_is_no_page() -> None:
    routes = set(named(get_resolver("config.urls_web")))
    assert len(routes) > 70
    assert routes - set(PAGES) - set(NO_PAGES) - set(WITHOUT_PICTURES) == set(), (
        "pages without a browser test: tests/browser/routes.py"
    )
    assert (set(DASHBOARD) | set(ACCOUNT) | set(NO_PAGES)) - routes == set(), "routes that are gone"
    assert set(PAGES) & set(NO_PAGES) == set()


def test_every_list_of_the_console_has_its_picture() -> None:
    lists = {f"admin:{one._meta.app_label}_{one._meta.model_name}_changelist" for one in admin.site._registry}
    assert len(lists) > 30
    assert lists - set(CONSOLE) == set(), "lists without a browser test: tests/browser/routes.py"


def test_the_consoles_pages_are_there() -> None:
    for route in CONSOLE:
        args = [] if route.endswith(("index", "changelist")) else ["0" * 8 + "-0000-0000-0000-" + "0" * 12]
        assert reverse(route, args=args)


def test_every_act_of_the_console_has_its_picture() -> None:
    names = [name for names in CONSOLE_ACTS.values() for name in names]
    assert len(names) == len(set(names)) == sum(len(page.acts) for page in admin.site._registry.values())
    assert len(names) > 20
    assert {*TYPICAL_ACTS} < {*names}


def test_pictures_are_those_that_are_listed_in_every_size() -> None:
    listed = [name for names in PAGES.values() for name in names] + [*ERRORS]
    assert len(listed) == len(set(listed))
    wanted = {f"{name}-{width}-{scheme}.png" for name in listed for width, scheme in variants(name)}
    assert {path.name for path in PICTURES.glob("*.png")} == wanted
    for name in wanted:
        width = int(name.rsplit("-", 2)[1])
        assert struct.unpack(">I", (PICTURES / name).read_bytes()[16:20])[0] == width, name


@pytest.mark.parametrize("route", sorted(NO_PAGES))
def test_what_is_no_page_shows_none(acme: Rows, route: str) -> None:
    EmailAddress.objects.create(user=acme.user, email=acme.user.email, verified=True, primary=True)
    name = route.removeprefix("dashboard:")
    path = f"/t/acme/{addresses(acme)[name]}" if name in addresses(acme) else reverse(route)
    for client in (browser(acme.user), Client()):
        answer = client.get(path)
        html = "" if getattr(answer, "streaming", False) else answer.content.decode()
        assert answer.status_code != 200 or "<html" not in html, (route, answer.status_code)
