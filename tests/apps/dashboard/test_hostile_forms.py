"""What no browser's form sends and any client may: nothing breaks, nothing is cut short, nothing is half done."""

from typing import Any

import pytest
from django.db.models import Model

from apps.adapters.models import PointerMove
from apps.conversations.models import Feedback
from apps.dashboard.sessions import LONGEST_CORRECTION
from apps.governance.models import Erasure
from apps.learning.drift.models import TrainingPause
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows
from tests.apps.dashboard.conftest import browser

NUL, LONG = "it was\x00so", "x" * 1_000_000
UNKEPT = "Reason: it holds a character that cannot be kept. Take it out."
TOO_LONG = "Reason: at most {} characters, and this has 1,000,000. Make it shorter."


def rows_of(rows: Rows, model: type[Model]) -> int:
    with tenant_scope(rows.tenant.pk):
        return model._default_manager.filter(tenant=rows.tenant).count()


def posted(rows: Rows, path: str, **fields: str) -> str:
    """Post a form; return the words of the page that follows."""
    answer: Any = browser(rows.user).post(f"/t/acme/{path}", fields, follow=True)
    assert answer.status_code == 200, (path, answer.status_code)
    return str(answer.content.decode())


@pytest.mark.parametrize(("reason", "said"), [(NUL, UNKEPT), (LONG, TOO_LONG)])
def test_a_reason_that_cannot_be_kept_is_refused_in_words(acme: Rows, reason: str, said: str) -> None:
    policy = f"policies/{acme.policy.pk}"
    before = rows_of(acme, PointerMove), rows_of(acme, TrainingPause)
    for path, wish, begin, most in (
        ("point", "", "Nothing has moved", 400),
        ("training", "pause", "Nothing has changed", 300),
    ):
        page = posted(acme, f"{policy}/{path}", version="", wish=wish, reason=reason)
        assert f"{begin}: {said.format(most)}" in page
    assert (rows_of(acme, PointerMove), rows_of(acme, TrainingPause)) == before
    with tenant_scope(acme.tenant.pk):
        acme.policy.refresh_from_db()
    assert acme.policy.live_id == acme.version.pk


@pytest.mark.parametrize("name", ["end\x00acme", "שלום", "x" * 201])
def test_nobody_is_deleted_by_a_name_that_nobody_has(acme: Rows, name: str) -> None:
    before = rows_of(acme, Erasure)
    said = posted(acme, "data/delete", subject="end_user", name=name, typed=name)
    assert "Nobody is called" in said
    assert rows_of(acme, Erasure) == before


def test_a_correction_is_taken_whole_or_not_at_all(acme: Rows) -> None:
    path, before = f"turns/{acme.turn.pk}/feedback", rows_of(acme, Feedback)
    said = posted(acme, path, score="-1", correction="x" * (LONGEST_CORRECTION + 1))
    assert "What it should have been: at most 20,000 characters." in said
    assert rows_of(acme, Feedback) == before
    assert "Noted." in posted(acme, path, score="-1", correction="x" * LONGEST_CORRECTION)
    assert rows_of(acme, Feedback) == before + 1


def test_the_enter_key_corrects_and_praises_nothing(acme: Rows) -> None:
    """A browser that sends a form by that key presses its first button."""
    page = browser(acme.user).get(f"/t/acme/sessions/{acme.session.pk}").content.decode()
    form = page[page.index('class="thumbs"') :]
    first = form[form.index("<button") : form.index("</button>")]
    assert first == '<button class="quiet" name="score" value="">Correct'
    path = f"turns/{acme.turn.pk}/feedback"
    assert "Noted." in posted(acme, path, score="", correction="It should have been short.")
    with tenant_scope(acme.tenant.pk):
        newest = Feedback.objects.order_by("-created_at", "-id")[0]
    assert (newest.score, newest.correction) == (None, "It should have been short.")
    assert "Type what it should have been, or say" in posted(acme, path, score="", correction="")
