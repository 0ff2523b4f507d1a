"""Looking at pages as people have them, in every width and theme:
nothing cut or pushed out, nothing that axe-core finds serious, no word on the browser's console, and a policy
that lets in no inline code.

With `ATTUNE_SCREENSHOTS=docs/pages` the pictures are written there; `ATTUNE_PAGES` names those wanted, where
not all are.
"""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from django.urls import resolve
from PIL import Image
from playwright.sync_api import Browser, Locator, Page

from apps.accounts.models import User
from tests.browser.conftest import signed_in
from tests.browser.routes import ERRORS, PAGES, SCHEMES, WIDTHS, variants

AXE = (Path(__file__).parent / "axe.min.js").read_text(encoding="utf-8")
SHOTS = os.environ.get("ATTUNE_SCREENSHOTS")
ONLY = os.environ.get("ATTUNE_PAGES", "").split()
HEIGHT = 900
TALLEST = 2200  # of a picture
# what reaches past the window, though nothing around it scrolls
WIDER = """width => document.documentElement.scrollWidth <= width ? [] : [...document.querySelectorAll("body *")]
    .filter(one => one.getBoundingClientRect().right > width).map(one => one.outerHTML.slice(0, 160))"""
# what hides a part of its own words
_CUT = """() => [...document.querySelectorAll("main *")].filter(one => one.scrollWidth > one.clientWidth + 1
    && one.clientWidth > 0 && !one.closest(".hidden, svg, input, select")
    && ["hidden", "clip"].includes(getComputedStyle(one).overflowX)).map(one => one.outerHTML.slice(0, 160))"""
# a cell of a list of the console that is lower than what is in it
_LOW = """() => [...document.querySelectorAll("#result_list :is(td, th)")].filter(one => one.clientHeight > 0
    && one.scrollHeight > one.clientHeight + 1 && getComputedStyle(one).overflowY !== "visible")
    .map(one => one.outerHTML.slice(0, 160))"""
_DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"


def serious(page: Page) -> list[str]:
    """Return what axe-core finds that is serious or worse."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    found = page.evaluate("axe.run()")
    return [
        f"{one['id']}: {node['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]


def keep(picture: bytes, path: Path) -> None:
    """Write a picture in 256 colours: less than half the size, and nobody sees the difference."""
    path.parent.mkdir(parents=True, exist_ok=True)
    few = Image.open(io.BytesIO(picture)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


@dataclass
class Looker:
    """A page in a window, small as a telephone but while it is looked at."""

    page: Page
    said: list[str] = field(default_factory=list)
    """What the browser's console complained of."""
    faults: list[str] = field(default_factory=list)
    """What was wrong with what was seen."""
    loose: list[str] = field(default_factory=list)
    """Documents that came without a strict policy."""

    def at(self, name: str, path: str, *, status: int = 200, idle: bool = True) -> None:
        """Go to a page and look at it; `idle=False` for one that holds a stream open."""
        if ONLY and name not in ONLY:
            return
        answer = self.page.goto(path)
        assert answer is not None
        assert answer.status == status, (name, answer.status)
        if status != 200:
            self.said[:] = [one for one in self.said if f"status of {status}" not in one]
        if idle:
            self.page.wait_for_load_state("networkidle")
        self.see(name)

    def see(self, name: str, *, whole: bool = True, around: Locator | None = None) -> None:
        """Look at the page that is shown, and keep its picture.

        `whole=False`: of what is in the window; `around`: of what is in it once this is scrolled to.
        """
        if ONLY and name not in ONLY:
            return
        if name not in ERRORS:
            self._place(name)
        for width in WIDTHS:
            for scheme in SCHEMES:
                self._judge(name, width, scheme)
                if SHOTS and (width, scheme) in variants(name):
                    if around is not None:
                        around.scroll_into_view_if_needed()
                    self._keep(name, width, scheme, whole=whole and around is None)
        self._dress(WIDTHS[0], SCHEMES[0])

    def after(self, name: str, path: str, do: Callable[[Page], None]) -> None:
        """Look at what a page of the console shows once something was done on it, which goes when it is loaded anew."""
        if ONLY and name not in ONLY:
            return
        for width in WIDTHS:
            for scheme in SCHEMES:
                self.page.goto(path)
                self._dress(width, scheme, anew=True)
                do(self.page)
                self.page.wait_for_load_state("networkidle")
                self._place(name)
                self._fault(name, width, scheme)
                if SHOTS:
                    self._keep(name, width, scheme, whole=False)

    def _place(self, name: str) -> None:
        route = resolve(urlsplit(self.page.url).path).view_name
        assert name in PAGES.get(route, ()), f"{name} is no picture of {route}: tests/browser/routes.py"

    def check(self, name: str, path: str) -> None:
        """Go to a page and look at it as `at` does, without a picture."""
        if ONLY and name not in ONLY:
            return
        answer = self.page.goto(path)
        assert answer is not None
        assert answer.status == 200, (name, answer.status)
        for width in WIDTHS:
            for scheme in SCHEMES:
                self._judge(name, width, scheme)

    def _judge(self, name: str, width: int, scheme: str) -> None:
        self._dress(width, scheme, anew=name.startswith("console"))
        self._fault(name, width, scheme)

    def _fault(self, name: str, width: int, scheme: str) -> None:
        found = [f"too wide: {one}" for one in self.page.evaluate(WIDER, width)] + serious(self.page)
        # the console's library shortens long words
        hidden = _LOW if name.startswith("console") else _CUT
        found += [f"cut: {one}" for one in self.page.evaluate(hidden)]
        self.faults += [f"{name}, {width}, {scheme}: {one}" for one in found]

    def _dress(self, width: int, scheme: str, *, anew: bool = False) -> None:
        """Let the window have this width and theme, and the page drawn in it;
        `anew` where it knows them when it loads."""
        self.page.set_viewport_size({"width": width, "height": HEIGHT})
        self.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
        if anew:
            self.page.reload(wait_until="networkidle")
        self.page.evaluate(_DRAWN)

    def _keep(self, name: str, width: int, scheme: str, *, whole: bool) -> None:
        path = Path(str(SHOTS)) / f"{name}-{width}-{scheme}.png"
        if not whole:
            keep(self.page.screenshot(), path)
            return
        tall = int(self.page.evaluate("Math.max(innerHeight, document.documentElement.scrollHeight)"))
        # a window as tall as the page: what sticks to a window's edge would cover rows in the middle
        self.page.set_viewport_size({"width": width, "height": min(tall, TALLEST)})
        self.page.evaluate(_DRAWN)
        keep(self.page.screenshot(), path)


@contextmanager
def looking(
    chromium: Browser, web: str, *, user: User | None = None, console: bool = False
) -> Iterator[Looker]:
    """Open a window, of a person who is signed in or of a visitor; nothing went wrong in it when it closes.

    `console=True` leaves the operators' console its own policy.
    """
    with signed_in(chromium, web, user, width=WIDTHS[0]) as window:
        page = window.new_page()
        page.set_default_timeout(30_000)
        looker = Looker(page)
        window.on(
            "console", lambda message: looker.said.append(message.text) if message.type == "error" else None
        )
        window.on("weberror", lambda error: looker.said.append(str(error.error)))

        def strict(url: str, policy: str) -> bool:
            if console and urlsplit(url).path.startswith("/console/"):
                return policy.startswith("default-src 'none'; script-src 'self' 'unsafe-eval';")
            return policy.startswith("default-src 'none'; script-src 'self';") and "unsafe" not in policy

        window.on(
            "response",
            lambda answer: (
                looker.loose.append(answer.url)
                if answer.request.resource_type == "document"
                and not strict(answer.url, answer.headers.get("content-security-policy", ""))
                else None
            ),
        )
        yield looker
        assert looker.faults == []
        assert looker.said == []
        assert looker.loose == []
