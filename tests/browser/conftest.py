"""The web in a process of its own, and Debian's Chromium to look at it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from apps.accounts.models import User
from embedded.home import free_port
from tests.chat_model import build_chat_model

ROOT = Path(__file__).resolve().parents[2]
# Django's own calls are refused while a loop runs in the thread, and Playwright keeps one
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


@pytest.fixture(scope="session")
def web(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a web process on the tests' database."""
    del django_db_setup
    port, log = free_port(), tmp_path_factory.mktemp("web") / "web.log"
    url = f"http://127.0.0.1:{port}"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "config.asgi_web:application", "--port", str(port)],
            cwd=ROOT,
            env=os.environ
            | {
                "DJANGO_SETTINGS_MODULE": "config.settings.local",
                "SECRET_KEY": settings.SECRET_KEY,
                "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}",
                "DATABASE_POOL": "4",
                "MODEL_PATH": str(build_chat_model(tmp_path_factory.mktemp("chat") / "model")),
            },
            stdout=output,
            stderr=output,
        )
    end = time.monotonic() + 60
    while True:
        try:
            httpx.get(f"{url}/healthz", trust_env=False)
            break
        except httpx.TransportError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the web did not start: {log.read_text()}") from None
            time.sleep(0.1)
    yield url
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()


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
    chromium: Browser, web: str, user: User, *, width: int = 1440, scheme: str = "light"
) -> BrowserContext:
    """Return a window of that width in which the person is signed in."""
    client = Client()
    client.force_login(user)
    context = chromium.new_context(
        base_url=web,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        timezone_id="Europe/Zurich",
        locale="en-GB",
        reduced_motion="reduce",
    )
    context.add_cookies(
        [{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": web, "httpOnly": True}]
    )
    return context
