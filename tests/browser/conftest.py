"""The web in a process of its own, and Debian's Chromium to look at it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from apps.accounts.models import User
from tests.api.gateway_process import GatewayProcess
from tests.chat_model import build_chat_model
from tests.web_process import running_web

# Django's own calls are refused while a loop runs in the thread, and Playwright keeps one
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
# of a machine that does other things, too; nothing is measured by it
expect.set_options(timeout=20_000)


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_chat_model(tmp_path_factory.mktemp("chat") / "model")


@pytest.fixture(scope="session")
def gateway(
    django_db_setup: None, chat_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    """Return a gateway process on the tests' database."""
    del django_db_setup
    process = GatewayProcess(model=chat_model, log=tmp_path_factory.mktemp("gateway") / "gateway.log")
    yield process.start()
    process.stop()


@pytest.fixture(scope="session")
def web(
    django_db_setup: None, gateway: GatewayProcess, chat_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Return the address of a web process on the tests' database, which knows the gateway."""
    del django_db_setup
    log = tmp_path_factory.mktemp("web") / "web.log"
    registered = {"GITHUB_CLIENT_ID": "ours", "GOOGLE_CLIENT_ID": "ours"}
    with running_web(
        log,
        MODEL_PATH=str(chat_model),
        GATEWAY_URL=f"{gateway.url}/v1",
        EXPORT_STORE=str(settings.EXPORT_STORE),
        **registered,
    ) as url:
        yield url


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Return Debian's Chromium, which downloads nothing and asks nobody."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.fail("these tests look at pages in Debian's Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            args=[
                *("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"),
                *("--no-first-run", "--disable-component-update", "--disable-sync"),
            ],
        )
        yield browser
        browser.close()


def signed_in(
    chromium: Browser, web: str, user: User | None, *, width: int = 1440, scheme: str = "light"
) -> BrowserContext:
    """Return a window of that width in which the person is signed in, or nobody is."""
    context = chromium.new_context(
        base_url=web,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        timezone_id="Europe/Zurich",
        locale="en-GB",
        reduced_motion="reduce",
    )
    if user is None:
        return context
    client = Client()
    client.force_login(user)
    context.add_cookies(
        [{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": web, "httpOnly": True}]
    )
    return context
