"""What the console is called and what its side bar offers (settings: `UNFOLD`)."""

from typing import Any

from django.apps import apps
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse
from django.utils.text import capfirst

_GROUPS: list[tuple[str, list[tuple[str, str]]]] = [
    (
        "People",
        [
            ("accounts_tenant", "apartment"),
            ("accounts_user", "person"),
            ("accounts_membership", "badge"),
            ("keys_apikey", "key"),
            ("accounts_enduser", "group"),
        ],
    ),
    (
        "Conversations",
        [
            ("conversations_session", "forum"),
            ("conversations_turn", "chat"),
            ("conversations_feedback", "thumbs_up_down"),
            ("judging_judgement", "gavel"),
            ("judging_rubric", "straighten"),
            ("judging_rejudging", "restart_alt"),
            ("judging_judgespend", "payments"),
            ("memory_preference", "bookmark"),
        ],
    ),
    (
        "Learning",
        [
            ("learning_sample", "dataset"),
            ("learning_trainingrun", "model_training"),
            ("learning_driftreading", "show_chart"),
            ("learning_crossing", "trending_up"),
            ("learning_trainingpause", "pause_circle"),
            ("adapters_policy", "tune"),
            ("memory_memorysetting", "psychology"),
            ("memory_lesson", "school"),
            ("adapters_adapterversion", "layers"),
            ("adapters_pointermove", "swap_horiz"),
            ("adapters_gateresult", "rule"),
        ],
    ),
    (
        "Fleet",
        [
            ("engines_engine", "memory"),
            ("engines_loadedadapter", "download_done"),
            ("engines_desiredadapter", "inventory_2"),
        ],
    ),
    (
        "Alerts",
        [
            ("alerts_alert", "notifications"),
            ("alerts_delivery", "send"),
            ("alerts_webhookendpoint", "webhook"),
        ],
    ),
    (
        "Record",
        [
            ("kernel_outboxmessage", "outbox"),
            ("accounts_mail", "mail"),
            ("kernel_auditentry", "history_edu"),
        ],
    ),
]


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the side bar."""
    del request
    home = {"items": [{"title": "At a glance", "icon": "monitoring", "link": reverse("admin:index")}]}
    groups = [
        {
            "title": title,
            "separator": True,
            "items": [
                {"title": _plural(page), "icon": icon, "link": reverse(f"admin:{page}_changelist")}
                for page, icon in pages
            ],
        }
        for title, pages in _GROUPS
    ]
    return [home, *groups]


def _plural(page: str) -> str:
    """Return what the list's own page calls it."""
    opts = apps.get_model(page.replace("_", ".", 1))._meta  # noqa: SLF001
    return capfirst(str(opts.verbose_name_plural))


def tokens_css(request: HttpRequest) -> str:
    """Return the address of colour, space and type."""
    del request
    return static("attune/tokens.css")


def console_css(request: HttpRequest) -> str:
    """Return the address of the console's own parts."""
    del request
    return static("attune/console.css")


def favicon(request: HttpRequest) -> str:
    """Return the address of the icon."""
    del request
    return static("attune/favicon.svg")
