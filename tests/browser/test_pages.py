"""Every page of a tenant that has been in use for a week, and what one does on some of them."""

import datetime as dt
import json
import uuid
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from playwright.sync_api import Browser

from apps.accounts.models import Membership, Role
from apps.adapters.models import PointerMove, Policy
from apps.alerts.models import WebhookEndpoint
from apps.governance.models import Erasure, ErasureState
from apps.memory.models import Preference, PreferenceState
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows
from tests.apps.dashboard.conftest import member
from tests.browser.conftest import signed_in
from tests.browser.looking import looking
from tests.browser.rows import lived_in

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def acme(transactional_db: None) -> Rows:
    del transactional_db
    return lived_in()


def addresses(rows: Rows) -> dict[str, str]:
    """Return the address of every page, by the name of its picture."""
    here = f"/t/{rows.tenant.slug}"
    with tenant_scope(rows.tenant.pk):
        wanted = Preference.objects.get(own_words__startswith="Use metric").pk
        deletion = Erasure.objects.filter(state=ErasureState.DONE).first()
        assert deletion is not None
    return {
        "overview": f"{here}/?range=7d",
        "sessions": f"{here}/sessions",
        "session": f"{here}/sessions/{rows.session.pk}",
        "memory": f"{here}/memory",
        "preference": f"{here}/memory/{wanted}",
        "adapters": f"{here}/adapters",
        "adapter": f"{here}/adapters/{rows.version.pk}",
        "runs": f"{here}/runs",
        "run": f"{here}/runs/{rows.run.pk}",
        "drift": f"{here}/drift",
        "reference": f"{here}/reference",
        "reference-memory": f"{here}/reference?of=memory",
        "keys": f"{here}/keys",
        "key-limits": f"{here}/keys/{rows.key.pk}/limits",
        "key-rotate": f"{here}/keys/{rows.key.pk}/rotate",
        "key-revoke": f"{here}/keys/{rows.key.pk}/revoke",
        "members": f"{here}/members",
        "settings": f"{here}/settings",
        "data": f"{here}/data",
        "delete": f"{here}/data/delete?subject=session&id={rows.session.pk}",
        "deletion": f"{here}/data/deletions/{deletion.pk}",
        "settings-policy": f"{here}/settings/policies/{rows.policy.pk}",
        "settings-limits": f"{here}/settings/limits",
        "settings-judging": f"{here}/settings/judging",
        "settings-alerts": f"{here}/settings/alerts",
        "settings-endpoint": f"{here}/settings/alerts/{_endpoint_of(rows)}",
    }


def _endpoint_of(rows: Rows) -> uuid.UUID:
    with tenant_scope(rows.tenant.pk):
        return WebhookEndpoint.objects.get().pk


def test_every_page_is_whole(acme: Rows, web: str, chromium: Browser) -> None:
    with looking(chromium, web, user=acme.user) as eyes:
        for name, path in addresses(acme).items():
            eyes.at(name, path, idle=name != "runs")  # which is followed


def test_charts_are_drawn_and_times_are_in_the_readers_zone(acme: Rows, web: str, chromium: Browser) -> None:
    with signed_in(chromium, web, acme.user) as window:
        page = window.new_page()
        page.goto("/t/acme/")
        assert page.locator(".charts canvas").count() == 5
        page.goto("/t/acme/runs")
        assert page.locator(".charts canvas").count() == 6
        page.goto("/t/acme/drift")
        assert page.locator(".charts canvas").count() == 8
        page.goto("/t/acme/sessions")
        first = page.locator("td time").first
        assert "UTC" not in first.inner_text()
        assert "UTC" in (first.get_attribute("title") or "")


_PIXELS = """marks => {
    const canvas = document.querySelector("[data-chart=reward] canvas");
    return marks.map(one => {
        const of = canvas.getContext("2d").getImageData(one.left, one.bottom - 9, one.right - one.left, 10).data;
        const seen = new Set();
        for (let at = 0; at < of.length; at += 4) if (of[at + 3] > 200) seen.add([...of.slice(at, at + 3)].join());
        return [...seen].map(one => one.split(",").map(Number));
    });
}"""


_ACCENT = """() => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.fillStyle = getComputedStyle(document.querySelector("main a:not([aria-current])")).color;
    pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}"""


def test_each_mark_names_its_version_where_no_curve_is(acme: Rows, web: str, chromium: Browser) -> None:
    with tenant_scope(acme.tenant.pk):
        coder = Policy.objects.create(name="a-coder-with-a-long-name", base_model="tiny")
        made = PointerMove.objects.create(policy=coder, to_version=None, actor="user:1", reason="")
        day = timezone.now() - dt.timedelta(days=1)
        PointerMove.objects.filter(pk=made.pk).update(created_at=day)
    for width, scheme in ((1440, "light"), (360, "dark")):
        with signed_in(chromium, web, acme.user, width=width, scheme=scheme) as window:
            page = window.new_page()
            page.goto("/t/acme/")
            place = page.locator("[data-chart=reward]")
            marks = json.loads(place.get_attribute("data-marks") or "")
            names = [one["name"] for one in marks]
            assert "a-coder-with-… v0" in names
            assert names[0] == "default v2"  # the newest is named at any width
            if width == 1440:
                assert len(names) == 8
            for one in marks:
                assert 0 <= one["left"] < one["right"]
                assert one["left"] - 1 <= one["x"] <= one["right"] + 1
                assert one["bottom"] < one["plot"]
                beside = [other for other in marks if other["bottom"] == one["bottom"] and other is not one]
                assert all(other["right"] < one["left"] or one["right"] < other["left"] for other in beside)
            wanted = page.evaluate(_ACCENT)
            for colours in page.evaluate(_PIXELS, marks):
                assert colours
                for colour in colours:  # nothing but the name, with rounded edges
                    assert max(abs(one - other) for one, other in zip(colour, wanted, strict=True)) <= 8


def test_a_point_says_which_time_it_sums_up(acme: Rows, web: str, chromium: Browser) -> None:
    with signed_in(chromium, web, acme.user) as window:
        page = window.new_page()
        page.goto("/t/acme/?range=7d")
        chart = json.loads(page.locator("#chart-data").text_content() or "")
        last = chart["points"][-1]["t"]
        assert last < chart["until"] <= last + chart["step"] == last + 3 * 3600
        over = page.locator("[data-chart=requests] .u-over")
        box = over.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 20)
        said = page.locator("[data-chart=requests] .u-value").first
        begun, ended = (
            dt.datetime.fromtimestamp(one, ZoneInfo("Europe/Zurich")) for one in (last, chart["until"])
        )
        # a stretch that is not over ends now
        end = f"{ended:%H:%M}"
        if ended.date() != begun.date():
            end = f"{ended.day} {ended:%b %Y, %H:%M}"
        assert said.inner_text() == f"{begun.day} {begun:%b %Y, %H:%M} to {end}"


def test_a_page_is_walked_with_the_keyboard(acme: Rows, web: str, chromium: Browser) -> None:
    with signed_in(chromium, web, acme.user) as window:
        page = window.new_page()
        page.goto("/t/acme/sessions")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"


def test_a_key_is_made_and_copied(acme: Rows, web: str, chromium: Browser) -> None:
    with looking(chromium, web, user=acme.user) as eyes:
        page = eyes.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto("/t/acme/keys")
        page.get_by_role("textbox", name="Name").fill("laptop")
        page.get_by_role("button", name="Make it").click()
        secret = page.locator(".secret").inner_text()
        eyes.see("keys-made")
        page.get_by_role("button", name="Copy", exact=True).click()
        page.get_by_role("button", name="Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == secret


def test_somebody_is_taken_out_after_a_question(acme: Rows, web: str, chromium: Browser) -> None:
    guest = member(acme.tenant, Role.MEMBER)
    with tenant_scope(acme.tenant.pk):
        row = Membership.objects.get(user=guest)
    with looking(chromium, web, user=acme.user) as eyes:
        eyes.at("member-out", f"/t/acme/members/{row.pk}")
    with signed_in(chromium, web, acme.user, width=360) as window:
        page = window.new_page()
        page.goto("/t/acme/members")
        page.get_by_role("link", name=f"Take out {guest.email}").click()
        page.get_by_role("button", name="Take out").click()
        page.get_by_text("Taken out. Their keys are revoked.").wait_for()
    with tenant_scope(acme.tenant.pk):
        assert not Membership.objects.filter(pk=row.pk).exists()


def test_what_is_pinned_and_forgotten_stays_on_its_page(acme: Rows, web: str, chromium: Browser) -> None:
    with signed_in(chromium, web, acme.user, width=360) as window:
        page = window.new_page()
        page.goto("/t/acme/memory?state=active")
        entry = page.locator(".entries li").filter(has_text="Say when you are not sure.")
        entry.get_by_role("button", name="Pin", exact=True).click()
        entry.get_by_text("pinned").wait_for()
        assert page.url.endswith("/t/acme/memory?state=active")
        assert page.get_by_role("status").inner_text() == "Pinned."
        assert "UTC" not in entry.locator("time").first.inner_text()
        page.on("dialog", lambda dialog: dialog.accept())
        entry.get_by_role("button", name="Forget").click()
        entry.wait_for(state="detached")
        with tenant_scope(acme.tenant.pk):
            assert Preference.objects.filter(state=PreferenceState.DELETED).count() == 1
