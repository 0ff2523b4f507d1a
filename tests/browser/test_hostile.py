"""A message of a megabyte that holds HTML,
JavaScript and right-to-left text leaves its page whole and safe."""

import json

import pytest
from playwright.sync_api import Browser

from apps.conversations.models import Turn
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows
from tests.browser.conftest import signed_in
from tests.browser.looking import serious
from tests.browser.rows import lived_in

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]
HOSTILE = (
    "</div></main></html><script>window.pwned=1;alert(1)</script><img src=x onerror=window.pwned=2>"
    "\"'><svg onload=window.pwned=3><iframe src=javascript:parent.pwned=4></iframe><style>body{display:none}</style>"
    "{{ 7|add:7 }} {% csrf_token %} <!-- ]]> \u202e\u2066 שלום עולם مرحبا بالعالم\n"
)
LONG = HOSTILE + "wide" * 5_000 + "\n" + "שלום " * 10_000 + HOSTILE + "word " * 186_000


@pytest.fixture
def acme(transactional_db: None) -> Rows:
    del transactional_db
    rows = lived_in(turns=8)
    with tenant_scope(rows.tenant.pk):
        assert len(LONG.encode()) > 1_000_000
        turn = Turn.objects.get(pk=rows.turn.pk)
        turn.messages = [{"role": "user", "content": LONG}, {"role": "user", "content": "שלום, מה שלומך?"}]
        turn.reply = {"role": "assistant", "content": LONG}
        turn.parent = None
        turn.error = HOSTILE[:400]
        turn.save()
    return rows


@pytest.mark.parametrize("width", [360, 1440])
def test_a_megabyte_of_hostile_text_stays_text(acme: Rows, web: str, chromium: Browser, width: int) -> None:
    with signed_in(chromium, web, acme.user, width=width) as window:
        page = window.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message) or dialog.dismiss())
        page.goto(f"/t/acme/sessions/{acme.session.pk}")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("window.pwned") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        shown = page.locator(f"#turn-{acme.turn.pk} .text")
        assert shown.count() == 3
        # not a character of its beginning is lost or became markup
        assert shown.first.evaluate("node => node.textContent").startswith(HOSTILE[:200])
        assert "more characters]" in shown.first.evaluate("node => node.textContent")
        assert shown.first.evaluate("node => node.childElementCount") == 0
        assert shown.nth(1).evaluate("node => getComputedStyle(node).direction") == "rtl"
        # what comes after it is where it belongs, and visible
        assert page.locator("main#main #turn-" + str(acme.turn.pk) + " form.thumbs").is_visible()
        assert page.evaluate("getComputedStyle(document.body).display") != "none"
        assert page.locator("iframe, main script, main img, main svg, main style").count() == 0
        assert serious(page) == []
        whole = page.request.get(f"/t/acme/turns/{acme.turn.pk}.json")
        assert "application/json" in whole.headers["content-type"]
        assert json.loads(whole.text())["reply"]["content"] == LONG
        assert said == []
