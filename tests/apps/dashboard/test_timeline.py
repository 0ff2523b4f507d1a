"""What a session's page says of a turn that something is still to be said of, and how it gets to know."""

import datetime as dt
import re
import uuid
from html import unescape
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Role
from apps.adapters.models import AdapterVersion
from apps.conversations.models import Feedback, Session, Turn, TurnKind, TurnState
from apps.dashboard import sessions
from apps.dashboard.timeline import awaited, with_what_was_said
from apps.judging.models import Judgement, JudgementState
from apps.judging.reasons import Reason
from apps.learning.models import Sample, SampleState
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.apps.dashboard.conftest import browser, member
from tests.apps.learning.ledger import add_turn
from tests.tenants import add_somebody, add_version

ENGINE_S = settings.ENGINE_TIMEOUT_S
PIECE = re.compile(r'hx-get="([^"]+)"')


@pytest.fixture
def client(acme: Rows) -> Client:
    with tenant_scope(acme.tenant.pk):
        Feedback.objects.all().delete()
        Sample.objects.all().delete()
    return browser(acme.user)


def page(client: Client, rows: Rows) -> str:
    return client.get(f"/t/acme/sessions/{rows.session.pk}").content.decode()


def waits_for(rows: Rows) -> str:
    with tenant_scope(rows.tenant.pk):
        return awaited(with_what_was_said(Turn.objects.filter(pk=rows.turn.pk)).get())


def thumb(client: Client, rows: Rows, score: str = "1") -> Any:
    return client.post(f"/t/acme/turns/{rows.turn.pk}/feedback", {"score": score})


def test_a_page_of_settled_turns_asks_for_nothing(acme: Rows) -> None:
    assert "hx-get" not in page(browser(acme.user), acme)


def test_after_a_thumb_the_page_asks_until_it_is_in_the_sample(acme: Rows, client: Client) -> None:
    answer = thumb(client, acme)
    assert answer["Location"] == f"/t/acme/sessions/{acme.session.pk}#turn-{acme.turn.pk}"
    shown = page(client, acme)
    assert shown.count("judging…") == 1
    asks = PIECE.findall(shown)
    assert len(asks) == 1
    assert asks[0].startswith(f"/t/acme/turns/{acme.turn.pk}/so-far?seen=")
    assert client.get(asks[0]).status_code == 204  # nothing has changed
    with tenant_scope(acme.tenant.pk):
        sample = Sample.objects.create(
            policy=acme.policy, turn=acme.turn, source="live", state=SampleState.READY, reward=1.0
        )
    piece = client.get(asks[0]).content.decode()
    assert "<dt>Reward</dt><dd>1</dd>" in piece
    assert ("judging…" in piece, "hx-get" in piece, "<html" in piece) == (False, False, False)

    thumb(client, acme, "-1")  # another mind: the sample follows until a run takes it
    assert waits_for(acme) == "judging"
    with tenant_scope(acme.tenant.pk):
        sample.reward = -1.0
        sample.save(update_fields=["reward"])
    assert waits_for(acme) == ""


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        (SampleState.READY, "", "judging"),
        (SampleState.INELIGIBLE, "no signal", "judging"),
        (SampleState.INELIGIBLE, "truncated", ""),
    ],
)
def test_what_no_thumb_changes_is_not_waited_for(
    acme: Rows, client: Client, state: SampleState, reason: str, expected: str
) -> None:
    with tenant_scope(acme.tenant.pk):
        Sample.objects.create(policy=acme.policy, turn=acme.turn, source="live", state=state, reason=reason)
    thumb(client, acme)
    assert waits_for(acme) == expected


def test_a_verdict_and_a_reply_under_way_are_waited_for_a_while(acme: Rows, client: Client) -> None:
    assert waits_for(acme) == ""
    with tenant_scope(acme.tenant.pk):
        judgement = Judgement.objects.create(turn=acme.turn, judge="model", prompt_version="2")
    assert judgement.state == JudgementState.PENDING
    assert waits_for(acme) == "judging"
    late = timezone.now() - dt.timedelta(minutes=3)
    with tenant_scope(acme.tenant.pk):
        Judgement.objects.filter(pk=judgement.pk).update(created_at=late)
    assert waits_for(acme) == ""
    with tenant_scope(acme.tenant.pk):
        Turn.objects.filter(pk=acme.turn.pk).update(state=TurnState.PENDING, reply=None, completed_at=None)
    assert waits_for(acme) == "answering"
    assert "No reply is stored" not in page(client, acme)
    with tenant_scope(acme.tenant.pk):  # a reply may take long: as long as an engine is given
        Turn.objects.filter(pk=acme.turn.pk).update(created_at=late)
    assert waits_for(acme) == "answering"
    with tenant_scope(acme.tenant.pk):
        Turn.objects.filter(pk=acme.turn.pk).update(created_at=late - dt.timedelta(seconds=ENGINE_S))
    assert waits_for(acme) == ""


def test_the_form_for_a_word_comes_once_with_the_reply(acme: Rows, client: Client) -> None:
    with tenant_scope(acme.tenant.pk):
        turn = Turn.objects.get(pk=acme.turn.pk)
        Turn.objects.filter(pk=turn.pk).update(state=TurnState.PENDING, reply=None, completed_at=None)
    before = page(client, acme)
    assert f'id="word-{turn.pk}"></div>' in before
    (asks,) = PIECE.findall(before)
    asks = unescape(asks)
    assert asks.endswith("&wordless=1")
    assert client.get(asks).status_code == 204  # still answering
    with tenant_scope(acme.tenant.pk):
        Turn.objects.filter(pk=turn.pk).update(
            state=TurnState.COMPLETE, reply=turn.reply, completed_at=timezone.now()
        )
    piece = client.get(asks).content.decode()
    assert f'<div id="word-{turn.pk}" hx-swap-oob="innerHTML"><form class="thumbs"' in piece
    assert f'action="/t/acme/turns/{turn.pk}/feedback"' in piece
    assert "csrfmiddlewaretoken" in piece
    # a page that has the form is left with it, and with what is being written there
    assert 'class="thumbs"' not in client.get(asks.replace("&wordless=1", "")).content.decode()
    # nobody else is offered to speak for them
    other = browser(member(acme.tenant, Role.ADMIN))
    piece = other.get(asks).content.decode()
    assert ("<dt>State</dt>" in piece, 'class="thumbs"' in piece) == (True, False)


@pytest.mark.parametrize("change", [{"state": TurnState.FAILED}, {"side": True}])
def test_what_takes_no_word_gets_no_form(acme: Rows, client: Client, change: dict[str, Any]) -> None:
    with tenant_scope(acme.tenant.pk):
        Turn.objects.filter(pk=acme.turn.pk).update(**change)
    asks = f"/t/acme/turns/{acme.turn.pk}/so-far?seen=0&wordless=1"
    assert 'class="thumbs"' not in client.get(asks).content.decode()
    assert f'id="word-{acme.turn.pk}"></div>' in page(client, acme)


@pytest.mark.parametrize(
    ("state", "reason", "said"),
    [
        (SampleState.INELIGIBLE, "greedy", f"no. {Reason.GREEDY.words} (greedy)"),
        (SampleState.DROPPED, "stale: 9 steps", f"no. {Reason.STALE.words} (stale: 9 steps)"),
        (SampleState.DROPPED, "a code of before", "no: a code of before"),
        (
            SampleState.READY,
            "truncated",
            f"not yet: it waits for a run. {Reason.TRUNCATED.words} (truncated)",
        ),
        (SampleState.READY, "", "not yet: it waits for a run"),
    ],
)
def test_why_it_taught_nothing_is_said_in_words(
    acme: Rows, client: Client, state: SampleState, reason: str, said: str
) -> None:
    with tenant_scope(acme.tenant.pk):
        Sample.objects.create(policy=acme.policy, turn=acme.turn, source="live", state=state, reason=reason)
    turn = page(client, acme).partition(f'id="turn-{acme.turn.pk}"')[2]
    shown = re.sub(r"<[^>]+>", "", turn.partition("<dt>Trained on</dt>")[2].partition("</dd>")[0])
    assert unescape(shown) == said


def test_a_long_session_is_walked_both_ways_and_a_turn_is_found_in_it(
    acme: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    del acme
    monkeypatch.setattr(sessions, "TURNS_SHOWN", 2)
    long = fill("globex", turns=7)
    with tenant_scope(long.tenant.pk):
        rows = Turn.objects.filter(session=long.session).order_by("created_at", "id")
        turns = list(rows.values_list("pk", flat=True))
    client, here = browser(long.user), f"/t/globex/sessions/{long.session.pk}"

    def at(path: str) -> tuple[list[uuid.UUID], dict[str, str]]:
        html = client.get(path).content.decode()
        links = re.findall(r'class="older"><a href="([^"]+)">(\w+) turns', html)
        shown = [uuid.UUID(one) for one in re.findall(r'id="turn-([0-9a-f-]+)"', html)]
        return shown, {word: f"{here}{unescape(link)}" for link, word in links}

    pages, path = [], here
    while path:
        shown, links = at(path)
        pages.append(shown)
        path = links.get("Later", "")
    assert pages == [turns[:2], turns[2:4], turns[4:6], turns[6:]]
    back = []
    while "Earlier" in links:
        shown, links = at(links["Earlier"])
        back.append(shown)
    assert back == [turns[4:6], turns[2:4], turns[:2]]
    for turn in turns:
        to = client.get(f"/t/globex/turns/{turn}")["Location"]
        assert to.endswith(f"#turn-{turn}")
        assert turn in at(to.partition("#")[0])[0]
    assert client.get(f"{here}?after=x").status_code == 404


def test_a_turn_of_somebody_else_is_not_told_of(acme: Rows) -> None:
    path = f"/t/acme/turns/{acme.turn.pk}/so-far"
    assert browser(acme.user).get(path).status_code == 200
    assert browser(member(acme.tenant, Role.MEMBER)).get(path).status_code == 404
    assert browser(member(acme.tenant, Role.VIEWER)).get(path).status_code == 403


@pytest.mark.django_db
def test_a_rollouts_page_says_how_old_it_is() -> None:
    """As old as its first turn, whatever versions answered later;
    a conversation of people says nothing of it."""
    somebody = add_somebody()
    versions: list[AdapterVersion] = []
    for number in range(1, 6):
        versions.append(add_version(somebody.policy, number, parent=versions[-1] if versions else None))
    beside = add_version(somebody.policy, 6, live=False, parent=versions[0])

    def said_of(*turns: AdapterVersion | None, kind: TurnKind = TurnKind.ROLLOUT) -> str:
        with tenant_scope(somebody.tenant.pk):
            session = Session.objects.create(user=somebody.user, policy=somebody.policy, kind=kind)
            for version in turns:
                add_turn(somebody, session=session, kind=kind, version=version)
        shown = browser(somebody.user).get(f"/t/acme/sessions/{session.pk}").content.decode()
        found = re.search(r"with default, (?:rollout|live)(.*?)</p>", shown)
        assert found is not None
        return found[1].removeprefix(", ")

    of_three = said_of(versions[1], versions[2], versions[3])
    assert of_three == "begun 3 steps before the version that answers now, ended 1 step before it"
    assert said_of(versions[4]) == "begun with the version that answers now"
    assert said_of(versions[3], versions[4]) == (
        "begun 1 step before the version that answers now, ended with it"
    )
    assert said_of(None, beside) == "begun 5 steps before the version that answers now"
    assert said_of(beside, versions[4]) == "begun on another branch than the version that answers now"
    assert said_of() == ""
    assert said_of(versions[1], kind=TurnKind.LIVE) == ""
