"""The playground's page; what it asks is in `tests/api/test_playground.py`."""

import json
import re
from typing import Any

import pytest

from apps.accounts.models import Role
from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.learning.models import Sample
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.apps.dashboard.conftest import browser, member, text_of

PATH = "/t/acme/playground"


def choices(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="choices" type="application/json">(.*?)</script>', page)
    assert found is not None
    read: dict[str, Any] = json.loads(found[1])
    return read


def test_what_may_be_asked(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        AdapterVersion.objects.filter(pk=acme.older.pk).update(state=VersionState.RETIRED)
        Policy.objects.create(name="coder", base_model="tiny")
    page = browser(acme.user).get(f"{PATH}?policy=default&version=1").content.decode()
    assert choices(page) == {
        "api_base": "http://127.0.0.1:8001/v1",
        "beside": "1",
        "policies": {
            "coder": {"live": 0, "temperature": 0.7, "versions": []},
            "default": {"live": 2, "temperature": 0.7, "versions": [2]},
        },
    }
    assert "<option selected>default</option>" in page
    assert "never trained on" in page
    assert "at-" not in re.sub(r"/static/\S+", "", page)  # no key, not even a part of one


@pytest.mark.parametrize(
    "query", ["version=x", "version=-1", "version=1234567890", "policy=nowhere", "version=²"]
)
def test_a_choice_that_is_none_is_not_found(acme: Rows, query: str) -> None:
    assert browser(acme.user).get(f"{PATH}?{query}").status_code == 404


@pytest.mark.parametrize("name", ["nowhere", "def\x00ault", "\x00", None, 7, ["default"]])
def test_a_policy_that_is_none_is_not_asked(acme: Rows, name: object) -> None:
    answer = browser(acme.user).post(
        f"{PATH}/ask", data={"policy": name, "version": "live"}, content_type="application/json"
    )
    assert answer.status_code == 404


def test_a_tenant_without_a_policy(acme: Rows) -> None:
    fill("globex")
    with system_scope("tests"):
        ada = member(acme.tenant, Role.MEMBER)
    assert "Live beside" in text_of(browser(ada), PATH)
    assert browser(member(acme.tenant, Role.VIEWER)).get(PATH).status_code == 403
    with tenant_scope(acme.tenant.pk):
        Policy.objects.update(name="x")
    assert "coder" not in text_of(browser(ada), PATH)


def test_a_side_turn_says_that_it_taught_nothing(acme: Rows) -> None:
    with tenant_scope(acme.tenant.pk):
        Sample.objects.filter(turn=acme.turn).delete()
        acme.turn.side = True
        acme.turn.save(update_fields=["side"])
    seen = text_of(browser(acme.user), f"/t/acme/sessions/{acme.session.pk}")
    assert "Trained on no: a side turn" in seen
    assert "What it should have been" not in seen.partition("no: a side turn")[2]


def test_a_turn_is_found_in_its_session(acme: Rows) -> None:
    place = f"/t/acme/sessions/{acme.session.pk}#turn-{acme.turn.pk}"
    assert browser(acme.user).get(f"/t/acme/turns/{acme.turn.pk}")["Location"] == place
    other = fill("globex")
    assert browser(acme.user).get(f"/t/acme/turns/{other.turn.pk}").status_code == 404
    ada = member(acme.tenant, Role.MEMBER)
    assert browser(ada).get(f"/t/acme/turns/{acme.turn.pk}").status_code == 404
