"""From signing up to a version that one's own thumb made, in a real browser against all of `make up`.

One platform, with a tiny model in a real engine and a real trainer; each pass signs up anew. With
`ATTUNE_SCREENSHOTS=docs/pages` the pictures are written there.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.looking import SHOTS, WIDER, keep, serious
from tests.e2e.platform_process import PlatformProcess
from tests.tiny_model import build_tiny_model

pytestmark = [pytest.mark.long, pytest.mark.e2e]
PASSWORD = "correct horse battery staple"
PATIENCE_MS = 120_000.0
ENDS = 13
"""The seed of weights that end a reply after some hundred tokens;
those of most go on for more than are left."""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformProcess]:
    """Return the running platform; one thumb is enough for a step, which learns from nothing else."""
    folder = tmp_path_factory.mktemp("first-run")
    started = PlatformProcess(
        folder / "home",
        MODEL_PATH=str(build_tiny_model(folder / "model", seed=ENDS)),
        BASE_MODEL_NAME="tiny",
        ENGINE_DTYPE="float32",
        TRAINER_DTYPE="float32",
        ATTUNE_DEVICE="cpu",
        TRAINER_DEVICE="cpu",
        TRAINING_BATCH="1",
        TRAINING_LR="0.001",
        DRIFT_BOUNDS='{"step_k3": {"limit": 10}}',
        SHADOW_ENABLED="false",
        MAX_REPLY_TOKENS="1800",  # a reply that was cut off makes no reward
    )
    try:
        started.start(within_s=900.0)
        yield started
    finally:
        started.stop(within_s=60.0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_from_signing_up_to_a_version_of_ones_own(
    platform: PlatformProcess, chromium: Browser, width: int, scheme: str
) -> None:
    who = f"eve-{width}-{scheme}"
    with chromium.new_context(
        base_url=platform.given["web_url"],
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        timezone_id="Europe/Zurich",
        locale="en-GB",
        reduced_motion="reduce",
    ) as window:
        window.grant_permissions(["clipboard-read", "clipboard-write"])
        page = window.new_page()
        page.set_default_timeout(PATIENCE_MS)
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))

        def looked_at(name: str) -> None:
            assert page.evaluate(WIDER, width) == [], name
            assert serious(page) == [], name
            if SHOTS:
                keep(page.screenshot(), Path(SHOTS) / f"first-run-{name}-{width}-{scheme}.png")

        sign_up(page, who)
        looked_at("overview")

        page.get_by_role("button", name="Make a key").click()
        secret = page.locator(".secret").inner_text()
        page.get_by_text("Waiting for the first request").wait_for()
        looked_at("key")
        page.get_by_role("button", name="Copy the curl").click()
        page.get_by_role("button", name="Copied").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert secret in copied
        streamed = run_as_copied(copied)
        assert streamed.startswith("data: {")
        assert streamed.rstrip().endswith("data: [DONE]")

        page.get_by_text("It landed.").wait_for()  # nobody touched the page
        looked_at("landed")
        page.get_by_role("link", name="See the session").click()
        expect(page.get_by_text("Why is the sky blue?")).to_be_visible()
        # one thumb by itself is the average of all thumbs;
        # with what it should have been, there is something to learn
        page.get_by_label("What it should have been").fill("Air scatters blue light the most.")
        page.get_by_role("button", name="Bad", exact=True).click()
        page.get_by_text("Noted. It outranks every judge.").wait_for()
        assert page.get_by_text(secret).count() == 0

        until(page, lambda: page.get_by_text("yes, in version 1").count() == 1)
        expect(page.locator("dt", has_text="Reward").locator("xpath=following-sibling::dd")).to_have_text(
            "-1"
        )
        looked_at("session")
        version = page.get_by_role("link", name="version 1").get_attribute("href")

        menu(page, "Runs")
        page.locator("tbody a").first.click()
        expect(page.get_by_text("succeeded").first).to_be_visible()
        looked_at("run")

        menu(page, "Overview")
        until(page, lambda: page.locator(f'.cards a[href="{version}"]').count() == 1)
        marked = json.loads(page.locator("#chart-data").text_content() or "")["moves"]
        assert [one["version"] for one in marked] == [1]
        assert page.locator(".charts canvas").count() == 5
        page.locator(".charts").scroll_into_view_if_needed()
        looked_at("chart")
        assert said == []


def sign_up(page: Page, who: str) -> None:
    """Make an account; ends on the overview of a new tenant."""
    page.goto("/")
    page.get_by_role("link", name="Make an account").click()
    page.locator("[name=email]").fill(f"{who}@example.org")
    page.locator("[name=password1]").fill(PASSWORD)
    page.locator("[name=password2]").fill(PASSWORD)
    page.locator("[name=organisation]").fill(who)
    page.get_by_role("button", name="Make it").click()
    page.get_by_role("heading", name="Ask it something").wait_for()
    assert page.url.endswith(f"/t/{who}/")


def run_as_copied(command: str) -> str:
    """Run a command as somebody's shell would, and return what it printed."""
    ended = subprocess.run(
        ["bash", "-c", command],
        env=os.environ | {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def menu(page: Page, name: str) -> None:
    """Go to a page by the menu, which small screens fold."""
    link = page.get_by_role("navigation", name="Main").get_by_role("link", name=name)
    if not link.is_visible():
        page.locator(".menu > summary").click()
    link.click()
    page.wait_for_load_state("load")
    expect(page.locator(".side [aria-current=page]")).to_have_text(name)


def until(page: Page, holds: Callable[[], bool]) -> None:
    """Load the page anew until something is on it."""
    for _ in range(600):
        if holds():
            return
        page.wait_for_timeout(500)
        page.reload()
    raise AssertionError(f"waited in vain on {page.url}: {page.locator('main').inner_text()[:2000]}")
