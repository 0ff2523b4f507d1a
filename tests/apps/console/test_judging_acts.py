"""What operators may do about verdicts."""

import pytest
from django.test import Client
from django.urls import reverse

from apps.judging.models import Judgement, Rejudging, Rubric
from apps.judging.services import write_rubric
from kernel.tenancy import tenant_scope
from tests.apps.console.rows import Rows
from tests.apps.console.test_acts import act_url

pytestmark = pytest.mark.usefixtures("everything")


def test_a_verdict_is_overridden(acme: Rows, console: Client) -> None:
    judgement = Judgement.objects.filter(turn=acme.turn).get()
    url = act_url(judgement, "override")
    assert console.post(url, {"reason": "a bot", "reward": "7"}).status_code == 200
    assert Judgement.objects.filter(turn=acme.turn).count() == 1
    console.post(url, {"reason": "a bot", "reward": "1"})
    found = Judgement.objects.get(turn=acme.turn, source="override")
    assert (found.reward, found.reason) == (1, "a bot")


def test_a_rubric_is_written_and_a_window_judged_again(acme: Rows, console: Client) -> None:
    console.post(act_url(acme.policy, "rubric"), {"reason": "new", "text": "Be kind."})
    assert Rubric.objects.order_by("-number")[0].text == "Be kind."
    before = Rejudging.objects.count()
    assert console.post(act_url(acme.policy, "rejudge"), {"reason": "new", "hours": "0"}).status_code == 200
    done = console.post(act_url(acme.policy, "rejudge"), {"reason": "new", "hours": "24"}, follow=True)
    assert "1 turns are judged once more." in done.content.decode()
    assert Rejudging.objects.count() == before + 1


def test_the_policys_page_shows_how_judges_agree_with_people(acme: Rows, console: Client) -> None:
    page = console.get(reverse("admin:adapters_policy_change", args=[acme.policy.pk])).content.decode()
    assert "Judges against people" in page
    assert "<td>1.00</td>" in page


def test_a_rubric_begins_with_the_words_that_hold_and_not_with_those_of_the_tenant(
    acme: Rows, console: Client
) -> None:
    def said() -> str:
        form = console.get(act_url(acme.policy, "rubric")).context["form"]
        return str(form["text"].value())

    with tenant_scope(acme.tenant.pk):
        write_rubric(tenant_id=acme.tenant.pk, policy=acme.policy, text="Be kind.", actor="test")
        write_rubric(tenant_id=acme.tenant.pk, policy=None, text="Be brief.", actor="test")
    assert said() == "Be kind."
    console.post(act_url(acme.policy, "rubric"), {"reason": "as the tenant's", "text": ""})
    assert said() == ""
