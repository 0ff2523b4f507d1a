"""A chat in a real browser, through the web, the gateway and an engine that behaves."""

import threading
import time
from collections.abc import Iterator

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page

from apps.conversations.models import Turn, TurnKind, TurnState
from apps.engines.models import Engine
from kernel.tenancy import system_scope, tenant_scope
from tests.api.loaded import make_loaded
from tests.apps.console.rows import Rows
from tests.browser.conftest import signed_in
from tests.browser.looking import looking
from tests.browser.rows import lived_in
from tests.fake_engine import FakeEngine

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]
PATH = "/t/acme/playground"
HOSTILE = (
    "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script> </div> &amp; שלום"
)


@pytest.fixture
def acme(transactional_db: None) -> Rows:
    del transactional_db
    return lived_in(turns=80)


@pytest.fixture
def engine(acme: Rows) -> Iterator[FakeEngine]:
    with FakeEngine(api_key=settings.ENGINE_API_KEY, admin_key=settings.ENGINE_ADMIN_KEY) as running:
        with system_scope("tests"):
            Engine.objects.update(url=running.url, boot_id="1")
        assert acme.policy.live is not None
        make_loaded(acme.policy.live, running)
        running.say("Seven", " minutes", " in", " boiling", " water", ".")
        yield running


def turns(rows: Rows) -> list[Turn]:
    with tenant_scope(rows.tenant.pk):
        return list(Turn.objects.filter(kind=TurnKind.EVALUATION).order_by("created_at"))


def replies(page: Page) -> list[str]:
    return page.locator(".talk:not([hidden]) .message.assistant .text").all_inner_texts()


def answered(page: Page) -> None:
    page.get_by_role("status").filter(has_text="Answered.").wait_for()


def test_the_live_version_beside_the_base(
    acme: Rows, engine: FakeEngine, web: str, chromium: Browser
) -> None:
    live = acme.policy.live
    assert live is not None
    with looking(chromium, web, user=acme.user) as eyes:
        page = eyes.page
        page.goto(PATH)
        page.get_by_label("Message", exact=True).fill("How do I boil an egg?")
        page.keyboard.press("Enter")
        answered(page)
        assert replies(page) == ["Seven minutes in boiling water."] * 2
        shown = page.locator(".facts-line").all_inner_texts()
        assert shown[0].startswith(f"version {live.number}, 7 tokens, ")
        assert shown[1].startswith("version 0, 7 tokens, ")
        page.get_by_label("Message", exact=True).fill("In one word, please.")
        page.keyboard.press("Shift+Enter")
        page.keyboard.type("And why?")
        engine.say("Seven", ".")
        page.keyboard.press("Enter")
        page.locator(".facts-line").nth(3).wait_for()
        assert page.locator(".message.user .text").nth(1).inner_text() == "In one word, please.\nAnd why?"
        eyes.see("playground", whole=False)
    asked = turns(acme)
    assert [turn.side for turn in asked] == [True] * 4
    assert sorted(turn.version_id is not None for turn in asked) == [False, False, True, True]
    assert len({turn.session_id for turn in asked}) == 2
    assert sum(turn.parent_id is not None for turn in asked) == 2
    assert len({turn.key_id for turn in asked}) == 1


def test_a_hostile_reply_is_text(acme: Rows, engine: FakeEngine, web: str, chromium: Browser) -> None:
    engine.say(*HOSTILE.split(" "))
    with signed_in(chromium, web, acme.user) as window:
        page = window.new_page()
        page.goto(f"{PATH}?version=0")
        page.get_by_label("Message", exact=True).fill("<b>hi</b>")
        page.get_by_role("button", name="Send").click()
        answered(page)
        assert replies(page) == [HOSTILE.replace(" ", "")] * 2
        assert page.locator(".log img, .log script, .log b").count() == 0
        assert "taken" not in page.title()


def test_escape_stops_the_engine_and_keeps_what_came(
    acme: Rows, engine: FakeEngine, web: str, chromium: Browser
) -> None:
    engine.hold = threading.Event()
    with signed_in(chromium, web, acme.user) as window:
        page = window.new_page()
        page.goto(PATH)
        page.get_by_label("Live beside").select_option("")
        stop = page.get_by_role("button", name="Stop")
        assert stop.is_disabled()
        page.get_by_label("Message", exact=True).fill("How do I boil an egg?")
        page.keyboard.press("Enter")
        page.locator(".text", has_text="boiling water").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("status").filter(has_text="Stopped.").wait_for()
        assert stop.is_disabled()
        assert replies(page) == ["Seven minutes in boiling water."]
        engine.wait_for(lambda: engine.requests[-1].aborted is not None, within_s=20)
    end = time.monotonic() + 20
    while [turn.state for turn in turns(acme)] != [TurnState.ABORTED]:
        assert time.monotonic() < end, turns(acme)
        time.sleep(0.1)


def test_copied_requests_name_no_key(acme: Rows, engine: FakeEngine, web: str, chromium: Browser) -> None:
    with signed_in(chromium, web, acme.user) as window:
        window.grant_permissions(["clipboard-read", "clipboard-write"])
        page = window.new_page()
        page.goto(PATH)
        page.get_by_label("Message", exact=True).fill("It's \"quoted\"\nand 'quoted'")
        page.get_by_role("button", name="Copy as curl").first.click()
        curl = page.evaluate("navigator.clipboard.readText()")
        assert curl.startswith("curl -N http://127.0.0.1:8001/v1/chat/completions \\\n")
        assert '"Authorization: Bearer $ATTUNE_KEY"' in curl
        assert "It'\\''s" in curl
        page.get_by_role("button", name="Copy as Python").nth(1).click()
        page.wait_for_timeout(200)
        python = page.evaluate("navigator.clipboard.readText()")
        compile(python, "copied", "exec")
        assert 'model="default@0"' in python
        assert 'api_key=os.environ["ATTUNE_KEY"]' in python
        assert "at-" not in curl + python


def test_what_is_refused_is_said_and_not_said_again(
    acme: Rows, engine: FakeEngine, web: str, chromium: Browser
) -> None:
    engine.refuse_next(500, "broken", times=1)
    with looking(chromium, web, user=acme.user) as eyes:
        page = eyes.page
        page.goto(PATH)
        page.get_by_label("Live beside").select_option("")
        page.get_by_label("Message", exact=True).fill("first")
        page.keyboard.press("Enter")
        page.locator(".log .problem").wait_for()
        eyes.see("playground-refused", whole=False)
        eyes.said.clear()  # of the refused request
        page.get_by_label("Message", exact=True).fill("second")
        page.keyboard.press("Enter")
        answered(page)
    assert [message["content"] for message in turns(acme)[-1].messages] == ["second"]
