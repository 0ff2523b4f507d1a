"""Every page of the console, for operators and for others."""

import re
from html import unescape

import pytest
from django.contrib import admin
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.text import capfirst

from apps.accounts.models import Role, User
from apps.accounts.services import set_role
from apps.adapters.models import AdapterVersion, GateResult, Policy
from apps.conversations.models import Turn, TurnKind
from apps.engines.models import Engine, EngineState
from apps.keys.models import ApiKey
from apps.learning.drift.models import Crossing
from apps.learning.samples import make_sample
from kernel.models import AuditEntry
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill
from tests.apps.learning.ledger import add_turn
from tests.tenants import add_somebody

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
HOME = "/console/"


def list_url(model: type[models.Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def row_url(model: type[models.Model], pk: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[pk])


def a_row(model: type[models.Model]) -> models.Model:
    with system_scope("test"):
        row = model._default_manager.order_by("-pk").first()
    assert row is not None
    return row


def test_everything_an_operator_needs_is_there() -> None:
    labels = {model._meta.label for model in MODELS}
    assert {
        *("accounts.Tenant", "accounts.User", "accounts.Membership", "keys.ApiKey"),
        *("adapters.Policy", "adapters.AdapterVersion", "adapters.PointerMove", "adapters.GateResult"),
        *("conversations.Session", "conversations.Turn", "conversations.Feedback", "judging.Judgement"),
        *("memory.Preference", "memory.MemorySetting", "memory.Lesson"),
        *("learning.Sample", "learning.TrainingRun", "engines.Engine", "engines.LoadedAdapter"),
        *("kernel.OutboxMessage", "kernel.AuditEntry"),
    } <= labels


@each_model
def test_lists_and_rows_show_for_an_operator(acme: Rows, console: Client, model: type[models.Model]) -> None:
    listed = console.get(list_url(model))
    shown = console.get(row_url(model, a_row(model).pk))
    assert (listed.status_code, shown.status_code) == (200, 200)
    for page in (listed.content.decode(), shown.content.decode()):
        assert "<script>alert(1)" not in page


UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@each_model
def test_no_list_and_no_title_shows_an_id_where_there_are_words(
    acme: Rows, console: Client, model: type[models.Model]
) -> None:
    del acme
    listed = console.get(list_url(model)).content.decode()
    rows = listed.partition('id="result_list"')[2].partition("</table>")[0]
    assert rows
    assert UUID.search(re.sub(r"<[^>]+>", " ", rows)) is None
    shown = console.get(row_url(model, a_row(model).pk)).content.decode()
    title = shown.partition('id="content-main"')[0]
    assert UUID.search(re.sub(r"<[^>]+>", " ", title)) is None


def test_lists_and_the_side_bar_call_the_same_thing_the_same(acme: Rows, console: Client) -> None:
    del acme
    for model in MODELS:
        page = re.sub(r"\s+", " ", console.get(list_url(model)).content.decode())
        called = capfirst(str(model._meta.verbose_name_plural))
        link = f'href="{list_url(model)}"'
        assert len(re.findall(rf"{link}[^>]*>(?:(?!</a>).)*{re.escape(called)}", page)) >= 2, model


def test_the_audit_log_names_people_keys_policies_and_tenants(acme: Rows, console: Client) -> None:
    with system_scope("test"):
        made = [
            AuditEntry.objects.create(actor=actor, action="x.y", target=target, tenant=acme.tenant)
            for actor, target in (
                (f"user:{acme.user.pk}", f"policy:{acme.policy.pk}"),
                (f"key:{acme.key.public_id}", f"tenant:{acme.tenant.pk}"),
                ("system:drift", f"turn:{acme.turn.pk}"),
            )
        ]
    pages = [console.get(row_url(AuditEntry, row.pk)).content.decode() for row in made]
    said = [
        ("owner@acme.example", "policy default of acme"),
        ("key a key of owner@acme.example", "tenant acme"),
    ]
    said.append(("the platform: drift", f"turn:…{str(acme.turn.pk)[-8:]}"))
    listed = console.get(list_url(AuditEntry)).content.decode()
    for page, words in zip(pages, said, strict=True):
        for one in words:
            assert f">{one}</span>" in page
            assert f">{one}</span>" in listed


def test_the_page_of_a_policy_says_who_dealt_with_a_crossing(acme: Rows, console: Client) -> None:
    actor = f"user:{acme.user.pk}"
    with system_scope("test"):
        assert Crossing.objects.filter(policy=acme.policy).update(cleared_by=actor) == 1
    page = console.get(row_url(Policy, acme.policy.pk)).content.decode()
    assert f'<span title="{actor}">owner@acme.example</span>' in page
    assert page.count(actor) == 1


def test_the_page_of_a_version_says_in_words_what_checks_measured(acme: Rows, console: Client) -> None:
    detail = {"passes": 12, "of": 16, "k3": 0.41759, "reason": "<b>"}
    with tenant_scope(acme.tenant.pk):
        GateResult.objects.create(version=acme.version, check_name="held-out", passed=False, detail=detail)
    page = console.get(row_url(AdapterVersion, acme.version.pk)).content.decode()
    (cell,) = re.findall(r"<td>(<span[^>]*>Pass without.*?)</td>", page)
    assert re.sub(r"<(?!br)[^>]*>", "", cell).split("<br>") == [
        "Pass without being told: 12 of 16 held-out replies",
        "Distance from the base (k3): 0.418 nats a token",
        "Why it did not pass: &lt;b&gt;",
    ]


def test_every_act_says_what_it_is_done_to() -> None:
    labels = [act.label for page in admin.site._registry.values() for act in page.acts]
    assert [label for label in labels if " " not in label] == []
    assert len(labels) == len(set(labels))


@each_model
def test_an_empty_list_says_what_fills_it(console: Client, model: type[models.Model]) -> None:
    """The operator who looks, and the rows that the platform writes of them, are the only ones there are."""
    fills = str(getattr(admin.site._registry[model], "fills", ""))
    assert len(fills) > 40
    page = unescape(console.get(list_url(model)).content.decode())
    with system_scope("test"):
        is_empty = not model._default_manager.exists()
    assert is_empty == (model != User)
    assert (f"<p>{fills}</p>" in page) == is_empty
    assert ("Nothing fits" in page) is False
    sought = unescape(console.get(list_url(model), {"q": "nobody-ever"}).content.decode())
    assert ("Nothing fits" in sought, f"<p>{fills}</p>" in sought) == (True, False)


@each_model
def test_nothing_can_be_added_edited_or_deleted(
    acme: Rows, console: Client, model: type[models.Model]
) -> None:
    row = a_row(model)
    info = (model._meta.app_label, model._meta.model_name)
    assert console.get(reverse("admin:{}_{}_add".format(*info))).status_code == 403
    assert console.post(row_url(model, row.pk), {"name": "changed"}).status_code == 403
    assert (
        console.post(reverse("admin:{}_{}_delete".format(*info), args=[row.pk]), {"post": "yes"}).status_code
        == 403
    )
    chosen = {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes"}
    console.post(list_url(model), chosen)
    with system_scope("test"):
        assert model._default_manager.filter(pk=row.pk).exists()


@each_model
def test_others_are_sent_away(acme: Rows, model: type[models.Model]) -> None:
    member = Client()
    member.force_login(acme.user)
    row = a_row(model)
    for visitor in (Client(), member):
        for url in (HOME, list_url(model), row_url(model, row.pk)):
            answer = visitor.get(url)
            assert answer.status_code == 302
            assert answer["Location"].startswith("/console/login/?next=/console/")
    asked = Client().get(answer["Location"])
    assert asked.status_code == 302
    assert asked["Location"].startswith("/accounts/login/?next=")
    assert member.get(answer["Location"]).status_code == 403


def test_a_deactivated_operator_is_sent_away(acme: Rows, console: Client, boss: User) -> None:
    boss.is_active = False
    boss.save()
    assert console.get(HOME).status_code == 302


@each_model
def test_lists_run_a_constant_number_of_queries(
    acme: Rows, console: Client, model: type[models.Model]
) -> None:
    url = list_url(model)
    console.get(url)  # content types and the like are cached from here on
    with CaptureQueriesContext(connection) as few:
        console.get(url)
    fill("globex", turns=7)
    fill("umbra", turns=5)
    with CaptureQueriesContext(connection) as many:
        console.get(url)
    assert len(many) == len(few)
    assert len(few) <= 12


def test_the_pages_of_a_session_and_a_turn_run_a_constant_number_of_queries(
    console: Client, db: None
) -> None:
    counts = {}
    for turns in (3, 12):
        rows = fill(f"tenant-{turns}", turns=turns)
        counts[turns] = []
        for row in (rows.session, rows.turn, rows.policy, rows.version, rows.run):
            url = row_url(type(row), row.pk)
            console.get(url)
            with CaptureQueriesContext(connection) as queries:
                assert console.get(url).status_code == 200
            counts[turns].append(len(queries))
    assert counts[3] == counts[12]


@each_model
def test_any_search_is_answered(acme: Rows, console: Client, model: type[models.Model]) -> None:
    for words in ("acme", "%_'\"\\", "00000000-0000-0000-0000-000000000000", "שלום", "a" * 300):
        assert console.get(list_url(model), {"q": words}).status_code == 200


@each_model
def test_any_filter_is_answered(acme: Rows, console: Client, model: type[models.Model]) -> None:
    model_admin = admin.site._registry[model]
    for name in model_admin.list_filter:
        if isinstance(name, str) and name in {field.name for field in model._meta.fields}:
            field = model._meta.get_field(name)
            lookup = f"{name}__id__exact" if field.is_relation else f"{name}__exact"
            value = str(acme.tenant.pk if name == "tenant" else getattr(a_row(model), field.attname))
            assert (
                console.get(
                    list_url(model), {lookup: {"True": "1", "False": "0"}.get(value, value)}
                ).status_code
                == 200
            )


def test_lists_of_turns_and_sessions_show_no_text(acme: Rows, console: Client) -> None:
    for model in (Turn, type(acme.session), type(acme.sample)):
        page = console.get(list_url(model)).content.decode()
        assert "question" not in page
        assert "answer" not in page


def test_a_turn_shows_all_that_is_known_of_it(acme: Rows, console: Client) -> None:
    page = console.get(row_url(Turn, acme.turn.pk)).content.decode()
    text = re.sub(r"<[^>]+>", " ", page)
    for words in (
        "question 0",
        "answer 0",
        "question 1",
        "answer 1",
        "be brief",
        "worse",
        "-7.50",
        "consumed",
        "3 → 4",
    ):
        assert words in text, words
    assert acme.version.served_name in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_a_turns_page_says_why_it_is_not_trained_on(console: Client, db: None) -> None:
    somebody = add_somebody()
    side, free, changed = (
        add_turn(somebody, **fields) for fields in ({"side": True}, {}, {"reply_edited": True})
    )
    with tenant_scope(somebody.tenant.id):
        make_sample(turn_id=changed.id)

    side_page, free_page, changed_page = (
        console.get(row_url(Turn, turn.pk)).content.decode() for turn in (side, free, changed)
    )
    assert "side turn: served and stored, never trained on" in side_page
    assert "may be trained on" in free_page
    assert "not trained on, edited reply: The client changed the reply before it went on" in changed_page


def test_a_session_shows_each_message_once(acme: Rows, console: Client) -> None:
    page = console.get(row_url(type(acme.session), acme.session.pk)).content.decode()
    assert [page.count(f"{word} {n} ") for word in ("question", "answer") for n in (0, 1)] == [1, 1, 1, 1]


def test_long_texts_are_cut(console: Client, db: None) -> None:
    rows = fill("verbose", text="x" * 1_000_000)
    page = console.get(row_url(Turn, rows.turn.pk)).content
    assert len(page) < 200_000
    assert b"more characters]" in page


def test_reading_what_people_wrote_leaves_an_audit_row(
    acme: Rows, console: Client, boss: User, everything: None
) -> None:
    read = AuditEntry.objects.filter(action__endswith=".read")
    console.get(list_url(Turn))
    console.get(row_url(type(acme.policy), acme.policy.pk))
    assert not read.exists()
    console.get(row_url(Turn, acme.turn.pk))
    console.get(row_url(type(acme.session), acme.session.pk))
    assert [(entry.actor, entry.action, entry.target, entry.tenant_id) for entry in read.order_by("id")] == [
        (f"user:{boss.pk}", "turn.read", f"turn:{acme.turn.pk}", acme.tenant.pk),
        (f"user:{boss.pk}", "session.read", f"session:{acme.session.pk}", acme.tenant.pk),
    ]


def test_nothing_is_in_a_state_that_no_text_holds(acme: Rows, console: Client) -> None:
    assert console.get(list_url(Turn), {"state__exact": "a\x00b"}).status_code == 404


def test_what_is_not_there_is_404(console: Client) -> None:
    for pk in ("00000000-0000-0000-0000-000000000000", "x", "1"):
        assert console.get(row_url(Turn, pk)).status_code in {302, 404}


def test_a_key_shows_its_public_half_only(acme: Rows, console: Client) -> None:
    for url in (list_url(type(acme.key)), row_url(type(acme.key), acme.key.pk)):
        page = console.get(url).content.decode()
        assert f"at-{acme.key.public_id}-…" in page
        assert bytes(acme.key.secret_sha256).hex() not in page
        assert "secret" not in page


def test_a_key_shows_which_scopes_do_not_count(acme: Rows, console: Client) -> None:
    pages = (list_url(ApiKey), row_url(ApiKey, acme.key.pk))
    assert not [page for page in pages if "does not count" in console.get(page).content.decode()]
    set_role(tenant_id=acme.tenant.pk, user=acme.user, role=Role.VIEWER, actor="user:x")
    for page in pages:
        assert "chat (does not count)" in console.get(page).content.decode(), page


def test_the_first_page_counts_what_is_there(acme: Rows, console: Client) -> None:
    with system_scope("test"):  # where an embedded engine listened before the last start
        Engine.objects.create(url="http://127.0.0.1:2", state=EngineState.DRAINING)
        turn = Turn.objects.filter(kind=TurnKind.LIVE).latest("id")
        Turn.objects.filter(id=turn.id).update(prompt_source="rendered", prompt_reason="edited history")
    with CaptureQueriesContext(connection) as few:
        page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", console.get(HOME).content.decode()))
    for words in (
        "Serving, last hour well 2",
        "last byte, mean 0.90 s",
        "rendered anew: edited history 1",
        "settled, last hour 2",
        "1 of 1",
        "judge well 1 ",
    ):
        assert words in page, words
    fill("globex", turns=9)
    with CaptureQueriesContext(connection) as many:
        console.get(HOME)
    assert len(many) == len(few)
