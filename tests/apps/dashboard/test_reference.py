"""The reference of /api: all that is described, with nothing that the page's policy would refuse."""

import html
import json

from apps.accounts.models import Role
from apps.dashboard.reference import DESCRIPTION, read
from tests.apps.console.rows import Rows
from tests.apps.dashboard.conftest import browser, member


def test_every_operation_stands_there_once_with_all_that_is_described(acme: Rows) -> None:
    client = browser(acme.user)
    described = json.loads(DESCRIPTION.read_text(encoding="utf-8"))
    overview = client.get("/t/acme/reference").content.decode()
    pages = {tag: client.get(f"/t/acme/reference?of={tag}").content.decode() for tag in read().tags}
    counted = 0
    for path, methods in described["paths"].items():
        for one in methods.values():
            name, tag = one["operationId"], one["tags"][0]
            assert overview.count(f'href="?of={tag}#{name}"') == 1, name
            assert [other for other, page in pages.items() if f'<h2 id="{name}">' in page] == [tag], name
            for parameter in one.get("parameters", ()):
                assert f"<code>{parameter['name']}</code>" in pages[tag], (name, parameter["name"])
            counted += 1
            body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            schema = described["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], {})
            for field in schema.get("properties", ()):
                assert f"<code>{field}</code>" in pages[tag], (name, field)
            assert path in pages[tag]
    assert counted == sum(len(operations) for operations in read().tags.values()) > 90


def test_a_call_can_be_copied_and_its_answer_read(acme: Rows) -> None:
    page = html.unescape(browser(acme.user).get("/t/acme/reference?of=memory").content.decode())
    asked = next(one for one in read().tags["memory"] if one.name == "memory_create").asked
    assert asked.startswith('/api/memory \\\n  -X POST \\\n  -H "Authorization: Bearer $ATTUNE_KEY"')
    assert '"text": "Answer in French."' in asked
    assert f"curl http://testserver{asked}" in page
    assert '"source": "typed"' in page


def test_kinds_say_their_choices_and_bounds() -> None:
    fields = {
        (one.name, field.name): field
        for operations in read().tags.values()
        for one in operations
        for field in [*one.answer, *one.parameters, *one.body]
    }
    assert fields["metrics_retrieve", "range"].kind == "1d | 7d | 30d"
    assert fields["memory_create", "text"].kind == "string, up to 400 characters"
    assert fields["memory_create", "text"].required
    assert fields["runs_list", "page_size"].kind == "integer, 1 to 200"
    assert fields["metrics_retrieve", "points[].first_token_ms.p50"].kind == "double, or null"
    assert fields["views_create", "filters.judged"].kind == "bad | good"
    assert fields["views_create", "filters.judged"].words == (
        "With a reply that a judge or a person called so. `bad`: a reply judged bad; `good`: a reply judged good"
    )
    assert fields["memory_list", "state"].words == ""


def test_every_role_reads_it_and_an_unknown_kind_is_nowhere(acme: Rows) -> None:
    viewer = browser(member(acme.tenant, Role.VIEWER))
    assert viewer.get("/t/acme/reference").status_code == 200
    assert viewer.get("/t/acme/reference?of=environments").status_code == 404
    assert "/t/acme/keys" not in viewer.get("/t/acme/reference").content.decode()
